"""Measure strategies of other libraries beside ours, and write the table of docs/performance.md: `make perf-peers`.

    scripts/perf_peers.py WHEEL [EXTRA …]

Each library is measured by `tests/perf/pairs.py` in an environment of its own, with its newest version. With names of
extras their rows are renewed, and the others stay. A library that cannot be installed, or whose pair fails, is a row
that says so; the exit code is 1 if one failed.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

SCRIPTS = Path(__file__).parent
sys.path.append(str(SCRIPTS.parent))  # the tests

from environments import FOLDER, installed, log  # noqa: E402

from tests.perf.pairs import PAIRS, SIZES, Measured, Pair  # noqa: E402

PAGE = SCRIPTS.parent / "docs" / "performance.md"
_PLACE = re.compile(r"(<!-- table: peers -->\n)(.*?)(<!-- end -->)", re.DOTALL)


def measured(wheel: str, extra: str) -> tuple[list[Measured], str]:
    """Return the figures of the pairs of an extra, and why some are missing, or nothing."""
    python, why = installed(wheel, extra)
    if python is None:
        return [], f"cannot be installed: {why}"
    # One thread for matrix products, as a worker has; two of them would stand in each other's way.
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "PYTHONNOUSERSITE": "1"}
    command = [python, "-m", "tests.perf.pairs", extra]
    with log(extra).open("a") as errors:
        done = subprocess.run(command, cwd=SCRIPTS.parent, env=environment, stdout=subprocess.PIPE, stderr=errors)
    rows = [msgspec.json.decode(line, type=Measured) for line in done.stdout.splitlines() if line.startswith(b"{")]
    return rows, f"failed: {log(extra)}" if done.returncode else ""


def table(rows: Mapping[str, Sequence[Measured]], missing: Mapping[str, str], before: str = "") -> str:
    """Return the figures of all pairs as Markdown. Rows of extras that are not in `rows` stay as they were `before`."""
    names = [f"{messages:,} messages, theirs | ours | ratio" for messages in SIZES]
    lines = [
        f"| library | theirs | ours | {' | '.join(names)} | tokens sent, theirs / ours | difference |",
        f"|---|---|---|{'---:|' * 7}---|",
    ]
    for pair in PAIRS:
        named = f" | `{pair.component}` | `{pair.spec}` | "
        stood = next((line for line in before.splitlines() if named in line), None)
        if pair.extra in rows or stood is None:
            of_pair = [each for each in rows.get(pair.extra, ()) if each.component == pair.component]
            lines.append(row(pair, named, of_pair, missing.get(pair.extra, "")))
        else:
            lines.append(stood)
    return "\n".join(lines)


def row(pair: Pair, named: str, of_pair: Sequence[Measured], why: str) -> str:
    """Return the row of a pair, with the figures of each length; `why` says why some are missing."""
    by_messages = {each.messages: each for each in of_pair}
    version = f" {of_pair[0].version}" if of_pair else ""
    last = by_messages.get(SIZES[-1])
    sent = "–" if last is None else f"{last.peer.tokens:,} / {last.ours.tokens:,}"
    difference = pair.differs if last else why or "not measured"
    cells = [*(figures(by_messages.get(messages)) for messages in SIZES), sent, difference]
    return f"| {pair.library}{version}{named}{' | '.join(cells)} |"


def figures(of: Measured | None) -> str:
    """Return the cells of a pair at one length."""
    if of is None:
        return "– | – | –"
    numbers = (of.peer.ms, of.ours.ms, of.peer.ms / of.ours.ms)
    return " | ".join(f"{number:.3g}" if number < 1000 else f"{number:,.0f}" for number in numbers) + " ×"


def main(wheel: str, *chosen: str) -> int:
    """Measure the pairs of the chosen extras, or of all, and write their rows into the page."""
    extras = list(dict.fromkeys(pair.extra for pair in PAIRS))
    if unknown := sorted({*chosen} - {*extras}):
        raise SystemExit(f"no pair has the extra {unknown[0]}: give some of {', '.join(extras)}")
    FOLDER.mkdir(parents=True, exist_ok=True)
    rows, missing = dict[str, list[Measured]](), dict[str, str]()
    for extra in chosen or extras:
        rows[extra], missing[extra] = measured(wheel, extra)
        print(f"{extra:<26} {missing[extra] or 'measured'}", flush=True)
    text = PAGE.read_text("utf-8")
    PAGE.write_text(_PLACE.sub(lambda place: f"{place[1]}{table(rows, missing, place[2])}\n{place[3]}", text), "utf-8")
    return int(any(why.startswith("failed") for why in missing.values()))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
