"""`make instructions` fails where a benchmark takes a tenth more than is stored, and says so where it cannot count."""

import json
import shutil
import sys
from pathlib import Path
from types import ModuleType

import pytest

from tests.perf import instructions as program

PROGRAM = """
import sys
from tests.perf.marks import count
if sys.argv[1] != "prepare":
    count({"add up": lambda: sum(range(SIZE)), "sort": lambda: sorted(range(1000))})
"""


@pytest.fixture(scope="module")
def instructions() -> ModuleType:
    return program


def test_more_than_a_tenth_fails(instructions: ModuleType) -> None:
    """10 % more passes, 11 % more fails, and so does a benchmark that one side does not have; fewer pass."""
    stored = {"same": 1000, "edge": 1000, "slow": 1000, "fast": 1000, "gone": 1000}
    table, failures = instructions.compared({"same": 1000, "edge": 1100, "slow": 1110, "fast": 9, "new": 1}, stored)
    assert failures == [
        "slow takes 11.0 % more instructions than is stored",
        "new has no stored count",
        "gone is stored and was not counted",
    ]
    assert [line.split()[-2:] for line in table.splitlines()[1:5]] == [
        ["+0.0", "%"],
        ["+10.0", "%"],
        ["+11.0", "%"],
        ["-99.1", "%"],
    ]


def test_where_nothing_can_be_compared(
    instructions: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without valgrind, and without counts of this Python and machine, a line says so; the exit code is 0."""
    monkeypatch.setattr(instructions.shutil, "which", lambda name: None)
    assert instructions.main([]) == 0
    assert "valgrind is not here" in capsys.readouterr().out
    monkeypatch.setattr(instructions.shutil, "which", lambda name: name)
    stored = tmp_path / "instructions.json"
    stored.write_text('{"another machine": {"sort": 1}}')
    assert instructions.main([], stored=stored) == 0
    assert f"no instructions are stored for {instructions.machine()}" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("valgrind") is None, reason="needs valgrind")
def test_a_slower_function_fails(instructions: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Counted by valgrind, a program passes beside its own counts, and fails once one function does a quarter more."""
    stored, program = tmp_path / "instructions.json", tmp_path / "program.py"
    command = [sys.executable, "-c", f"exec(open({str(program)!r}).read())"]
    program.write_text(PROGRAM.replace("SIZE", "100_000"))
    assert instructions.main(["--update"], command, stored) == 0
    counts = json.loads(stored.read_text())[instructions.machine()]
    assert counts["add up"] > 100_000
    assert instructions.main([], command, stored) == 0
    program.write_text(PROGRAM.replace("SIZE", "125_000"))
    capsys.readouterr()
    assert instructions.main([], command, stored) == 1
    (failure,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("FAILED")]
    assert failure.startswith("FAILED: add up takes 2")
