"""Attack what ctxbench promises, and print what was tried, held and fell: `python -m tests.attacks` (ten minutes).

Every regular expression gets texts that might take it long. Bits are flipped in every file of a run folder, at
`--positions` places, each followed by a command that reads it. The tests of `docs/promises.md` run, of signals, and of
two runs at once, slow ones too: each case is an attempt.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from xml.etree import ElementTree

from tests.attacks.bits import Tally, add_all, attack, commands, make, stop
from tests.attacks.patterns import attack_patterns

ROOT = Path(__file__).parents[2]
OTHERS = (
    "tests/attacks/test_concurrency.py::test_two_runs_in_one_folder",
    "tests/attacks/test_signals.py::test_every_command",
)


def tested(folder: Path) -> dict[str, Tally]:
    """Run the tests of the promises and the others, and return what became of the cases of each."""
    promised = re.findall(r"`(tests/\S+::\w+)`", (ROOT / "docs/promises.md").read_text("utf-8"))
    tests = sorted({*promised, *OTHERS})
    options = ["-q", "-p", "no:cacheprovider", "-m", "slow or not slow", f"--junitxml={folder / 'cases.xml'}"]
    subprocess.run([sys.executable, "-m", "pytest", *options, *tests], cwd=ROOT, stdout=sys.stderr, check=False)
    tallies = {name: Tally() for name in tests}
    for case in ElementTree.parse(folder / "cases.xml").iter("testcase"):
        test = f"{case.attrib['classname'].replace('.', '/')}.py::{case.attrib['name'].partition('[')[0]}"
        tallies[test].tried += 1
        wrong = [part.attrib["message"] for kind in ("failure", "error") for part in case.iter(kind)]
        if wrong:
            tallies[test].fell.append(f"{test}: {wrong[0].splitlines()[0]}")
        else:
            tallies[test].held["passed" if case.find("skipped") is None else "not run here"] += 1
    return tallies


def row(name: str, tally: Tally) -> str:
    """Return a row of the table."""
    kinds = ", ".join(f"{count:,} {what}" for what, count in tally.held.items() if count)
    return f"{name:102}  {tally.tried:>5,}  {tally.held.total():>5,}  {len(tally.fell):>4,}  {kinds}"


def main() -> int:
    """Attack, print the table, and return 1 if anything fell, or was not tried."""
    parser = argparse.ArgumentParser(prog="python -m tests.attacks", description=__doc__)
    parser.add_argument("--positions", type=int, default=3_000)
    parser.add_argument("--seed", type=int, default=11)
    asked = parser.parse_args()
    seed, few = asked.seed, asked.positions // 10
    print(f"{'attack':102}  tried   held  fell", flush=True)
    with TemporaryDirectory() as place:
        folder = Path(place)
        make(folder)
        add_all(folder)
        tallies = {"a text that a pattern takes long for": attack_patterns()}
        tallies |= {f"a bit of a finished run (seed {seed})": attack(folder, commands(folder), asked.positions, seed)}
        tallies[f"a bit of a stopped run (seed {seed})"] = attack(folder, stop(folder), few, seed)
        tallies |= tested(folder)
    print(*(row(name, tally) for name, tally in tallies.items()), sep="\n")
    print(*(f"fell: {line}" for tally in tallies.values() for line in tally.fell), sep="\n")
    return int(any(tally.fell or not tally.tried for tally in tallies.values()))


if __name__ == "__main__":
    sys.exit(main())
