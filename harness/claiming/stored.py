"""The findings beside the run that they are of: `claims.json` in its folder, for the report."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path

import msgspec

from ...scenarios.errors import RunError
from ..loading import Run
from .claim import Finding

FILE, VERSION = "claims.json", 1


class Stored(msgspec.Struct, frozen=True):
    """All findings of one run, and how they were made."""

    version: int
    run: str
    """The digest of the run's manifest: findings of another run do not count."""
    findings: tuple[Finding, ...]
    quick: bool = False
    recordings: tuple[str, ...] = ()


def digest_of(run: Run) -> str:
    """Of what was run: SHA-256 of the manifest's bytes."""
    return hashlib.sha256((run.folder / "manifest.json").read_bytes()).hexdigest()


def write(run: Run, findings: Sequence[Finding], quick: bool, recordings: Sequence[str]) -> Path:
    """Keep findings in a run's folder, whole or not at all. Raises RunError if it cannot be written."""
    path = run.folder / FILE
    draft = path.with_name(f".{FILE}.{os.getpid()}")
    names = tuple(Path(each).name for each in recordings)
    stored = Stored(VERSION, digest_of(run), tuple(findings), quick, names)
    try:
        draft.write_bytes(msgspec.json.encode(stored))
        os.replace(draft, path)
    except OSError as error:
        raise RunError(f"{path}: cannot be written: {error.strerror or error}") from None
    finally:
        draft.unlink(missing_ok=True)
    return path


def read(run: Run) -> Stored | None:
    """The findings of this very run; None if there are none, or only of another version or run."""
    path = run.folder / FILE
    if not path.is_file():
        return None
    try:
        found = msgspec.json.decode(path.read_bytes(), type=Stored)
    except (OSError, msgspec.DecodeError):
        return None
    return found if found.version == VERSION and found.run == digest_of(run) else None
