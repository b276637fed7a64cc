"""Which run a command means when none is named."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ...scenarios.errors import RunError
from .say import say

RunArgument = Annotated[
    Path, typer.Argument(help="The run folder.", metavar="RUN", show_default="the newest under runs/")
]


def chosen(folder: Path) -> Path:
    """The folder itself if it is a run, else the newest run in it, which is named on standard error."""
    if (folder / "manifest.json").exists() or not folder.is_dir():
        return folder
    found = sorted(folder.glob("*/manifest.json"), key=lambda path: path.stat().st_mtime)
    if not found:
        raise RunError(f"{folder}: no run is here: make one with `ctxbench run`")
    say(f"{found[-1].parent}: the newest run in {folder}")
    return found[-1].parent
