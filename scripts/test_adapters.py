"""Test each adapter with the newest version of its library, in an environment of its own (`make test-adapters`).

Extras named `adapter-x-y` are tested by `tests/strategies/adapters/test_x_y.py` and `test_versions.py`, on this Python
or on the first newer one that the library can be installed on. Environments are made by uv in build/adapters. A line
says for each extra whether it passed, failed, or cannot be installed, and why; the exit code is 1 if one failed.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

FOLDER = Path("build/adapters")
PYTHONS = (sys.executable, "3.12", "3.13")
BESIDE = ("pytest", "hypothesis")  # packages that the tests of adapters import beside ctxbench and the library
TESTS = Path("tests/strategies/adapters")


def extras() -> dict[str, list[str]]:
    """Return the requirements of the extras of adapters, by name."""
    table = tomllib.loads(Path("pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    return {name: needs for name, needs in table.items() if name.startswith("adapter-")}


def installed(wheel: str, extra: str) -> tuple[str | None, str]:
    """Make an environment with the wheel and an extra.

    Returns its Python; None, and why not on this Python, if no Python can have it.
    """
    reasons, uv = [], str(Path(sys.executable).with_name("uv"))
    folder = FOLDER / extra
    for version in PYTHONS:
        code, said = command(uv, "venv", "--quiet", "--clear", "--no-python-downloads", "--python", version, folder)
        if code == 0:
            install = ("pip", "install", "--quiet", "--python", folder / "bin" / "python")
            code, said = command(uv, *install, f"{wheel}[{extra}]", *BESIDE)
        if code == 0:
            return str(folder / "bin" / "python"), ""
        reasons.append(" ".join(said.partition(", we can conclude")[0].split())[:300])
    return None, reasons[0]


def command(*words: str | Path) -> tuple[int, str]:
    """Run a command. Returns its exit code and what it printed."""
    environment = {**os.environ, "PYTHONNOUSERSITE": "1", "COLUMNS": "120"}
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment)
    return done.returncode, done.stdout


def test(wheel: str, extra: str, requirements: list[str]) -> str:
    """Install an extra and run its tests. Returns the outcome as a line."""
    file = TESTS / f"test_{extra.removeprefix('adapter-').replace('-', '_')}.py"
    if not file.exists():
        return f"failed: there is no {file}"
    python, why = installed(wheel, extra)
    if python is None:
        return f"cannot be installed: {why}"
    code, said = command(python, "-m", "pytest", "-p", "no:cacheprovider", file, TESTS / "test_versions.py")
    counts = re.findall(r"^\d+ .*", said, re.MULTILINE)
    names = [re.split(r"[^\w.-]", requirement)[0] for requirement in requirements]
    ask = "import sys, importlib.metadata as m; print(*(f'{name} {m.version(name)}' for name in sys.argv[1:]))"
    what = f"{counts[-1] if counts else f'exit code {code}'} with {command(python, '-c', ask, *names)[1].strip()}"
    # A library that is there and cannot be imported has its tests skipped.
    if code or "could not import" in said or " passed" not in what:
        log = FOLDER / f"{extra}.log"
        log.write_text(said, "utf-8")
        return f"failed: {what}: {log}"
    return f"passed: {what}"


def main(wheel: str, *chosen: str) -> int:
    """Test the chosen extras, or all."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    failed = False
    for extra, requirements in extras().items():
        if not chosen or extra in chosen:
            outcome = test(wheel, extra, requirements)
            failed = failed or outcome.startswith("failed")
            print(f"{extra:<26} {outcome}", flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
