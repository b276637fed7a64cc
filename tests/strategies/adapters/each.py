"""Test each adapter with the newest version of its library, in an environment of its own (`make test-adapters`).

Extras named `adapter-x-y` are tested by `tests/strategies/adapters/test_x_y.py` and `test_versions.py`, on this Python
or on the first newer one that the library can be installed on; uv makes the environments. A line says for each extra
whether it passed, failed, or cannot be installed, and why; the exit code is 1 if one failed.
"""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

FOLDER = Path("build/adapters")  # of the logs
PYTHONS = (sys.executable, "3.12", "3.13")
BESIDE = ("pytest", "hypothesis", "openai")  # packages that tests of adapters import beside ctxbench and the library
TESTS = Path("tests/strategies/adapters")


def command(*words: str | Path) -> tuple[int, str]:
    """Run a command. Returns its exit code and what it printed."""
    environment = {**os.environ, "PYTHONNOUSERSITE": "1", "COLUMNS": "120"}
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment)
    return done.returncode, done.stdout


def test(wheel: str, extra: str, requirements: list[str]) -> str:
    """Run the tests of an extra, with the wheel and nothing else of the machine. Returns the outcome as a line."""
    file = TESTS / f"test_{extra.removeprefix('adapter-').replace('-', '_')}.py"
    if not file.exists():
        return f"failed: there is no {file}"
    names = [re.split(r"[^\w.-]", requirement)[0] for requirement in requirements]
    ask = "import sys, importlib.metadata as m; print(*(f'{name} {m.version(name)}' for name in sys.argv[1:]))"
    uv = (Path(sys.executable).with_name("uv"), "run", "--quiet", "--isolated", "--no-project", "--no-python-downloads")
    packages = [f"--with={package}" for package in (f"{wheel}[{extra}]", *BESIDE)]
    reasons = []
    for version in PYTHONS:
        run = (*uv, f"--python={version}", *packages, "python")
        code, versions = command(*run, "-c", ask, *names)
        if code == 0:
            break
        reasons.append(" ".join(versions.partition(", we can conclude")[0].split())[:300])
    else:
        return f"cannot be installed: {reasons[0]}"
    code, said = command(*run, "-m", "pytest", "-p", "no:cacheprovider", file, TESTS / "test_versions.py")
    counts = re.findall(r"^\d+ .*", said, re.MULTILINE)
    what = f"{counts[-1] if counts else f'exit code {code}'} with {versions.strip()}"
    # A library that is there and cannot be imported has its tests skipped.
    if code or "could not import" in said or " passed" not in what:
        log = FOLDER / f"{extra}.log"
        log.write_text(said, "utf-8")
        return f"failed: {what}: {log}"
    return f"passed: {what}"


def main(wheel: str, *chosen: str) -> int:
    """Test the extras of adapters that are chosen, or all."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    extras = tomllib.loads(Path("pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    failed = False
    for extra, requirements in extras.items():
        if extra.startswith("adapter-") and (not chosen or extra in chosen):
            outcome = test(wheel, extra, requirements)
            failed = failed or outcome.startswith("failed")
            print(f"{extra:<26} {outcome}", flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
