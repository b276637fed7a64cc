"""Test each adapter with the newest version of its library, in an environment of its own (`make test-adapters`).

Extras named `adapter-x-y` are tested by `tests/strategies/adapters/test_x_y.py` and `test_versions.py`, on this Python
or on the first newer one that the library can be installed on. Environments and logs are in build/adapters. A line says
for each extra whether it passed, failed, or cannot be installed, and why; the exit code is 1 if one failed.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

FOLDER = Path("build/adapters")
NEWER_PYTHONS = ("3.12", "3.13")
BESIDE = ("pytest", "hypothesis")
"""Packages that the tests of adapters import beside ctxbench and the library."""
TESTS = Path("tests/strategies/adapters")
VERSIONS = TESTS / "test_versions.py"


def extras() -> dict[str, list[str]]:
    """Return the requirements of the extras of adapters, by name."""
    table = tomllib.loads(Path("pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    return {name: needs for name, needs in table.items() if name.startswith("adapter-")}


def installed(wheel: str, extra: str) -> tuple[str | None, str]:
    """Make an environment with the wheel and an extra.

    Returns its Python; None, and why not on this Python, if no Python can have it.
    """
    reasons = []
    for make, install in installers(FOLDER / extra):
        log(extra).unlink(missing_ok=True)
        code, said = command(make, log(extra))
        if code == 0:
            code, said = command([*install, f"{wheel}[{extra}]", *BESIDE], log(extra))
        if code == 0:
            return str(FOLDER / extra / "bin" / "python"), ""
        reasons.append(reason(said))
    return None, reasons[0]


def reason(said: str) -> str:
    """Return why an installation failed, of what pip or uv printed."""
    error = re.search(r"^\s*(error|×).*", said, re.MULTILINE | re.DOTALL | re.IGNORECASE)
    return " ".join((error.group() if error else said).partition(", we can conclude")[0].split())[:300]


def installers(folder: Path) -> Iterator[tuple[list[str], list[str]]]:
    """Yield for each Python the commands that make an environment of it and install into it, by uv if it is there."""
    python, uv = str(folder / "bin" / "python"), shutil.which("uv")
    for version in ("", *NEWER_PYTHONS):
        if uv:
            make = [uv, "venv", "--quiet", "--clear", "--no-python-downloads", "--python", version or sys.executable]
            yield [*make, str(folder)], [uv, "pip", "install", "--quiet", "--python", python]
        elif program := shutil.which(f"python{version}") if version else sys.executable:
            make = [program, "-m", "venv", "--clear", str(folder)]
            yield make, [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]


@cache
def pyenv() -> dict[str, str]:
    """Return the variable by which the programs of pyenv start any Python that it has, not the chosen one alone."""
    if not shutil.which("pyenv"):
        return {}
    names = subprocess.run(["pyenv", "versions", "--bare"], capture_output=True, text=True).stdout.split()
    return {"PYENV_VERSION": ":".join(names)}


def versions(python: str, requirements: list[str]) -> str:
    """Return the libraries of an extra with their versions."""
    names = [re.split(r"[^\w.-]", requirement)[0] for requirement in requirements]
    code = (
        "import sys, importlib.metadata as m; print(*(f'{name} {m.version(name)}' for name in sys.argv[1:]), sep=', ')"
    )
    return subprocess.run([python, "-c", code, *names], capture_output=True, text=True, check=True).stdout.strip()


def log(extra: str) -> Path:
    """Return the file that has what the commands for an extra printed."""
    return FOLDER / f"{extra}.log"


def command(words: list[str], log: Path) -> tuple[int, str]:
    """Run a command. Returns its exit code and what it printed, which is also appended to a file."""
    environment = {**os.environ, **pyenv(), "PYTHONNOUSERSITE": "1", "COLUMNS": "120"}
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment)
    with log.open("a", encoding="utf-8") as file:
        file.write(f"$ {' '.join(words)}\n{done.stdout}\n")
    return done.returncode, done.stdout


def test(wheel: str, extra: str, requirements: list[str]) -> str:
    """Install an extra and run its tests. Returns the outcome as a line."""
    file = TESTS / f"test_{extra.removeprefix('adapter-').replace('-', '_')}.py"
    if not file.exists():
        return f"failed: there is no {file}"
    python, why = installed(wheel, extra)
    if python is None:
        return f"cannot be installed: {why}"
    code, said = command([python, "-m", "pytest", "-p", "no:cacheprovider", str(file), str(VERSIONS)], log(extra))
    counts = re.findall(r"^\d+ .*", said, re.MULTILINE)
    what = f"{counts[-1] if counts else f'exit code {code}'} with {versions(python, requirements)}"
    # A library that is there and cannot be imported has its tests skipped.
    if code or "could not import" in said or " passed" not in what:
        return f"failed: {what}: {log(extra)}"
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
