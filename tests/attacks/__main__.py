"""Attack what ctxbench promises, and print what was tried, held and fell, as Markdown: `make attacks`.

Two processes work side by side, for some six minutes on two cores. One sends signals to every command. The other gives
every regular expression texts that might take it long; flips bits in every file of a run folder, at `--positions`
places, each followed by a command that reads it; and runs the tests of `docs/promises.md` and of two runs at once, slow
ones too. `--write PAGE` puts the table into a page, between `<!-- table: attacks -->` and `<!-- end -->`.
"""

import argparse
import os
import re
import subprocess
import sys
import time
from contextlib import chdir
from datetime import date
from pathlib import Path
from tempfile import TemporaryDirectory
from xml.etree import ElementTree

from tests.attacks.bits import Tally, add_all, attack, commands, make, stop
from tests.attacks.patterns import attack_patterns

ROOT = Path(__file__).parents[2]
SIGNALS = "tests/attacks/test_signals.py::test_every_command"
RUNS = "tests/attacks/test_concurrency.py::test_two_runs_in_one_folder"


def start(report: Path, *tests: str) -> subprocess.Popen[bytes]:
    """Start tests whose cases are reported in a file."""
    options = ["-q", "-p", "no:cacheprovider", "-m", "slow or not slow", f"--junitxml={report}"]
    return subprocess.Popen([sys.executable, "-m", "pytest", *options, *tests], cwd=ROOT, stdout=sys.stderr)


def tested(report: Path) -> Tally:
    """Return what became of the cases in a report."""
    tally = Tally()
    for case in ElementTree.parse(report).iter("testcase"):
        tally.tried += 1
        wrong = [part.attrib["message"] for kind in ("failure", "error") for part in case.iter(kind)]
        if not wrong:
            tally.held["passed" if case.find("skipped") is None else "not run here"] += 1
        tally.fell += [f"{case.attrib['classname']}: {case.attrib['name']}: {why.splitlines()[0]}" for why in wrong[:1]]
    return tally


def main() -> int:
    """Attack, print the table, and return 1 if anything fell, or was not tried."""
    parser = argparse.ArgumentParser(prog="python -m tests.attacks", description=__doc__)
    parser.add_argument("--positions", type=int, default=3_000)
    parser.add_argument("--seed", type=int, default=11)
    parser.add_argument("--write", type=lambda page: Path(page).resolve(), metavar="PAGE")
    asked, begun = parser.parse_args(), time.monotonic()
    os.environ["CTXBENCH_CACHE"] = "off"  # what is damaged is made again, and not found
    promised = re.findall(r"`(tests/\S+::\w+)`", (ROOT / "docs/promises.md").read_text("utf-8"))
    with TemporaryDirectory() as place, chdir(place):  # where no pyproject.toml is read before each command
        folder = Path(place)
        with start(folder / "signals.xml", SIGNALS):
            tallies = {"a text that a regular expression may take long for": attack_patterns()}
            make(folder)
            add_all(folder)
            of, positions, seed = commands(folder), asked.positions, asked.seed
            tallies["a flipped bit of a finished run"] = attack(folder, of, positions, seed)
            tallies["a flipped bit of a stopped run"] = attack(folder, stop(folder), positions // 10, seed)
            start(folder / "promises.xml", *promised, RUNS).wait()
        tallies["four signals to a command, at moments of chance"] = tested(folder / "signals.xml")
        tallies["a test of a promise above, or of two runs in one folder"] = tested(folder / "promises.xml")
    minutes = f"{(time.monotonic() - begun) / 60:.1f} minutes on {os.cpu_count()} cores"
    rows = ["| attack | tried | held | fell | how it held |", "|---|---:|---:|---:|---|"]
    for name, tally in tallies.items():
        kinds = ", ".join(f"{count:,} {what}" for what, count in tally.held.items() if count)
        rows.append(f"| {name} | {tally.tried:,} | {tally.held.total():,} | {len(tally.fell):,} | {kinds} |")
    rows += ["", f"Seed {seed}, {date.today():%d %B %Y}, {minutes}."]
    print(*rows, *(f"fell: {name}: {line}" for name, tally in tallies.items() for line in tally.fell), sep="\n")
    if asked.write:
        text = "\n".join([*rows, "<!-- end -->"])
        table = re.compile(r"(?<=<!-- table: attacks -->\n).*?<!-- end -->", re.DOTALL)
        asked.write.write_text(table.sub(lambda _: text, asked.write.read_text("utf-8")))
    return int(any(tally.fell or not tally.tried for tally in tallies.values()))


if __name__ == "__main__":
    sys.exit(main())
