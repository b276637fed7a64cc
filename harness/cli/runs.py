"""Which run a command means when none is named."""

from __future__ import annotations

from pathlib import Path

from ...scenarios.errors import RunError


def chosen(folder: Path) -> Path:
    """The folder itself if it is a run, else the newest run in it."""
    if (folder / "manifest.json").exists() or not folder.is_dir():
        return folder
    found = sorted(folder.glob("*/manifest.json"), key=lambda path: path.stat().st_mtime)
    if not found:
        raise RunError(f"{folder}: no run is here: make one with `ctxbench run`")
    return found[-1].parent
