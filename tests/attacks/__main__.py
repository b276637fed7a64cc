"""Attack what ctxbench promises, and print what was tried, held and fell: `python -m tests.attacks` (ten minutes).

First bits are flipped in every file of a run folder, at `--positions` places, each followed by a command that reads it.
Then the tests of `docs/promises.md` run, the slow ones too: each case is an attempt.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.attacks.bits import Tally, add_all, attack, attack_stopped, commands, make

ROOT = Path(__file__).parents[2]


class Outcomes:
    """A plug-in of pytest that counts what became of the cases of each test."""

    def __init__(self) -> None:
        self.tallies: dict[str, Tally] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count a case once, by its call, or by what went wrong before or after it."""
        if report.when != "call" and report.passed:
            return
        tally = self.tallies.setdefault(report.nodeid.partition("[")[0], Tally())
        tally.tried += 1
        if report.failed:
            tally.fell.append(f"{report.nodeid}: {report.longreprtext.splitlines()[-1]}")
        else:
            tally.held["passed" if report.passed else "not run here"] += 1


def main() -> int:
    """Attack, print the table, and return 1 if anything fell."""
    parser = argparse.ArgumentParser(prog="python -m tests.attacks", description=__doc__)
    parser.add_argument("--positions", type=int, default=3_000)
    parser.add_argument("--seed", type=int, default=11)
    asked = parser.parse_args()
    tallies = {}
    with TemporaryDirectory() as place:
        folder = Path(place)
        make(folder)
        add_all(folder)
        seed, few = asked.seed, asked.positions // 10
        tallies[f"a bit of a finished run (seed {seed})"] = attack(folder, commands(folder), asked.positions, seed)
        tallies[f"a bit of a stopped run (seed {seed})"] = attack_stopped(folder, few, seed)
    tests = sorted(set(re.findall(r"`(tests/\S+::\w+)`", (ROOT / "docs/promises.md").read_text("utf-8"))))
    outcomes = Outcomes()
    pytest.main(["-q", "--no-header", "-p", "no:cacheprovider", "-m", "slow or not slow", *tests], [outcomes])
    tallies |= outcomes.tallies
    rows = [("attack", "tried", "held", "fell")]
    for name, tally in tallies.items():
        held = Counter(tally.held)
        kinds = ", ".join(f"{count:,} {what}" for what, count in held.items() if count)
        rows.append((name, f"{tally.tried:,}", f"{held.total():,} ({kinds})", f"{len(tally.fell):,}"))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
    for tally in tallies.values():
        for line in tally.fell:
            print(f"fell: {line}")
    return int(any(tally.fell for tally in tallies.values()))


if __name__ == "__main__":
    sys.exit(main())
