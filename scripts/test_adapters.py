"""Test each adapter with the newest version of its library, in an environment of its own (`make test-adapters`).

Extras named `adapter-x-y` are tested by `tests/strategies/adapters/test_x_y.py` and `test_versions.py`, on this Python
or on the first newer one that the library can be installed on. Environments and logs are in build/adapters. A line says
for each extra whether it passed, failed, or cannot be installed, and why; the exit code is 1 if one failed.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from environments import FOLDER, command, extras, installed, log, versions

TESTS = Path("tests/strategies/adapters")
VERSIONS = TESTS / "test_versions.py"


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
