"""Count the machine instructions of short benchmarks, and compare them with stored counts: `make instructions`.

    python -m tests.perf.instructions [--update]

Valgrind counts what `tests/perf/counted.py` runs between its marks, start-up apart: the same code on the same Python
has the same count within a per cent, however busy the machine is. `tests/instructions.json` has the counts by Python,
compiler and machine. The exit code is 1 if a benchmark takes over 10 % more than is stored, or is not stored, or is
stored and was not counted. Without valgrind, or without counts of this Python and machine, a line says so and the exit
code is 0: there is nothing to compare.
"""

import argparse
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[2]
STORED = ROOT / "tests" / "instructions.json"
BENCHMARKS = (sys.executable, "-m", "tests.perf.counted")
MARK = "getpgid"  # the function of the C library that a benchmark program calls as a mark
MOST = 0.10


def machine() -> str:
    """Return the name under which the counts of this Python on this machine are stored."""
    parts = (platform.python_implementation(), platform.python_version(), platform.python_compiler())
    return f"{' '.join(parts)}, {platform.machine()}"


def environment() -> dict[str, str]:
    """Return the environment of a benchmark program: the same hashes each time, one thread, and bytecode."""
    # A machine may tell Python to write no bytecode: then all is compiled each time, for a minute under valgrind.
    others = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {
        **others,
        "PYTHONHASHSEED": "0",
        "OPENBLAS_NUM_THREADS": "1",
        "OMP_NUM_THREADS": "1",
        "CTXBENCH_CACHE": "off",
    }


def counted(program: Sequence[str], folder: Path) -> dict[str, int]:
    """Return the instructions of each benchmark of a program, which prints its name after it has run."""
    marks = [f"--dump-before={name}" for name in (MARK, f"__{MARK}")]
    valgrind = ["valgrind", "--tool=callgrind", *marks, f"--callgrind-out-file={folder / 'counts'}"]
    # At the same addresses each time, where the system allows it.
    fixed = ["setarch", "-R"]
    allowed = shutil.which("setarch") and subprocess.run([*fixed, "true"], capture_output=True).returncode == 0
    command = [*(fixed if allowed else ()), *valgrind, *program]
    done = subprocess.run(command, cwd=ROOT, env=environment(), capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}\n{done.stderr[-2000:]}")
    names = done.stdout.splitlines()
    # The counts of what came before the first mark have number 1, those of the first benchmark 2, what is between 3 …
    if not names or not (folder / f"counts.{2 * len(names)}").exists():
        raise SystemExit(f"valgrind counted {len(list(folder.glob('counts.*')))} parts of {len(names)} benchmarks")
    return {name: instructions(folder / f"counts.{2 * number}") for number, name in enumerate(names, 1)}


def instructions(path: Path) -> int:
    """Return the instructions of a file of callgrind."""
    total = re.search(r"^summary: (\d+)", path.read_text(), re.MULTILINE)
    assert total is not None, path
    return int(total[1])


def compared(counts: Mapping[str, int], stored: Mapping[str, int]) -> tuple[str, list[str]]:
    """Return a table of counts beside the stored ones, and the benchmarks that fail, each with the reason."""
    lines, failures = [f"{'benchmark':<32}{'counted':>16}{'stored':>16}{'change':>9}"], list[str]()
    for name in dict.fromkeys([*counts, *stored]):
        now, before = counts.get(name), stored.get(name)
        change = "" if now is None or before is None else f"{100 * (now / before - 1):+.1f} %"
        cells = ("–" if of is None else f"{of:,}" for of in (now, before))
        lines.append(f"{name:<32}{''.join(f'{cell:>16}' for cell in cells)}{change:>9}")
        if now is None:
            failures.append(f"{name} is stored and was not counted")
        elif before is None:
            failures.append(f"{name} has no stored count")
        elif now > before * (1 + MOST):
            failures.append(f"{name} takes {change} more instructions than is stored".replace("+", ""))
    return "\n".join(lines), failures


def main(words: Sequence[str] | None = None, program: Sequence[str] = BENCHMARKS, stored: Path = STORED) -> int:
    """Count, print and compare, or store what was counted."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--update", action="store_true", help="store the counts of this Python and machine")
    update = parser.parse_args(words).update
    if not shutil.which("valgrind"):
        print("valgrind is not here, so no instructions were counted: apt-get install valgrind")
        return 0
    by_machine: dict[str, dict[str, int]] = json.loads(stored.read_text("utf-8")) if stored.exists() else {}
    if not update and machine() not in by_machine:
        print(f"no instructions are stored for {machine()}: make instructions UPDATE=--update")
        return 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        subprocess.run([*program, "prepare", name], cwd=ROOT, env=environment(), check=True)
        counts = counted([*program, name], folder)
    table, failures = compared(counts, counts if update else by_machine[machine()])
    print(table)
    if update:
        text = json.dumps({**by_machine, machine(): counts}, indent=1, sort_keys=True)
        stored.write_text(text + "\n", "utf-8")
    for failure in failures:
        print(f"FAILED: {failure}")
    if failures:
        print("If that is meant: make instructions UPDATE=--update, and say why in the commit.")
    return int(bool(failures))


if __name__ == "__main__":
    sys.exit(main())
