"""The installed command, run as a user runs it."""

from __future__ import annotations

import os
import subprocess
import sysconfig
from pathlib import Path

CTXBENCH = str(Path(sysconfig.get_path("scripts")) / "ctxbench")


def ctxbench(*words: object, cwd: Path, code: int = 0) -> subprocess.CompletedProcess[str]:
    """Run the installed command. Whatever the outcome, there is never a traceback."""
    command = [CTXBENCH, *map(str, words)]
    environment = {**os.environ, "COLUMNS": "200", "NO_COLOR": "1"}
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False, env=environment)
    assert "Traceback" not in done.stderr, done.stderr
    assert done.returncode == code, done.stdout + done.stderr
    return done


def said(stderr: str) -> list[str]:
    """The lines on standard error, but for those of the progress, which a slow machine has more of."""
    return [line for line in stderr.splitlines() if not line.endswith("steps/s")]
