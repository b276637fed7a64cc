"""Runs that were to be logged and could not be: each has a note in its folder until it is."""

from __future__ import annotations

from pathlib import Path

import msgspec

from ..store import placed

NOTE = "mlflow.waiting.json"


class Waiting(msgspec.Struct, frozen=True):
    """Where a run was to be logged, and what was in the way."""

    to: str
    why: str


def wait(folder: Path, to: str, why: str) -> None:
    """Note that a run waits."""
    with placed(folder / NOTE) as path:
        path.write_bytes(msgspec.json.encode(Waiting(to, why)) + b"\n")


def done(folder: Path, to: str) -> None:
    """It was logged there. If it is another place that it waits for, it still does."""
    note = folder / NOTE
    if note.is_file() and _read(note).to in ("", to):
        note.unlink()


def waiting(beside: Path) -> dict[Path, Waiting]:
    """The runs in a folder that wait, by their folders."""
    return {path.parent: _read(path) for path in sorted(beside.glob(f"*/{NOTE}"))}


def _read(path: Path) -> Waiting:
    try:
        return msgspec.json.decode(path.read_bytes(), type=Waiting)
    except (OSError, msgspec.DecodeError):
        return Waiting("", "its note cannot be read")
