"""Register every claim in the order of its number, and store findings with a run."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from ...scenarios.errors import RunError, SpecError
from ...scenarios.spec import nearest
from ..folder.run import Run
from . import cache, clock, compression, cost, search, storage, tokens
from .claim import Finding
from .inputs import Claim

SUBJECTS = (tokens, cost, storage, search, cache, compression, clock)
"""Modules that each define some claims."""

CLAIMS: dict[str, Claim] = {
    claim.id: claim
    for claim in sorted((claim for subject in SUBJECTS for claim in subject.CLAIMS), key=lambda claim: claim.id)
}


def chosen(names: Iterable[str]) -> list[Claim]:
    """Return the named claims in their order, all if none is named. Raises SpecError for an unknown one."""
    wanted = {name.strip().upper() for name in names}
    for name in sorted(wanted):
        if name not in CLAIMS:
            raise SpecError(
                f"unknown claim {name!r}{nearest(name, dict.fromkeys(CLAIMS))}; there are C01 to {max(CLAIMS)}"
            )
    return [claim for name, claim in CLAIMS.items() if name in wanted or not wanted]


FILE, VERSION = "claims.json", 1


class StoredFindings(msgspec.Struct, frozen=True):
    """All findings on one run, and how they were made."""

    version: int
    run: str
    """The digest of the run's manifest: findings on another run do not count."""
    findings: tuple[Finding, ...]
    quick: bool = False
    recordings: tuple[str, ...] = ()


def digest_of(run: Run) -> str:
    """Return the SHA-256 of the bytes of the run's manifest."""
    return hashlib.sha256((run.folder / "manifest.json").read_bytes()).hexdigest()


def write(run: Run, findings: Sequence[Finding], quick: bool, recordings: Sequence[str]) -> Path:
    """Store findings in a run's folder, whole or not at all. Raises RunError if they cannot be written."""
    path = run.folder / FILE
    draft = path.with_name(f".{FILE}.{os.getpid()}")
    names = tuple(Path(recording).name for recording in recordings)
    stored = StoredFindings(VERSION, digest_of(run), tuple(findings), quick, names)
    try:
        draft.write_bytes(msgspec.json.encode(stored))
        os.replace(draft, path)
    except OSError as error:
        raise RunError(f"{path}: cannot be written: {error.strerror or error}") from None
    finally:
        draft.unlink(missing_ok=True)
    return path


def read(run: Run) -> StoredFindings | None:
    """Return the findings on this very run, or None if there are none of this version."""
    path = run.folder / FILE
    if not path.is_file():
        return None
    try:
        stored = msgspec.json.decode(path.read_bytes(), type=StoredFindings)
    except (OSError, msgspec.DecodeError):
        return None
    return stored if stored.version == VERSION and stored.run == digest_of(run) else None
