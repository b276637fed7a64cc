"""Every claim, in the order of its number."""

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
from .claim import Claim, Finding

SUBJECTS = (tokens, cost, storage, search, tokens, tokens, cache, compression, search, clock)

CLAIMS: dict[str, Claim] = {
    each.id: each
    for each in sorted((each for subject in SUBJECTS for each in subject.CLAIMS), key=lambda each: each.id)
}


def chosen(names: Iterable[str]) -> list[Claim]:
    """Those that are named, in their order; all if none is. Raises SpecError for one that there is not."""
    wanted = {name.strip().upper() for name in names}
    for name in sorted(wanted):
        if name not in CLAIMS:
            raise SpecError(f"unknown claim {name!r}{nearest(name, dict.fromkeys(CLAIMS))}; there are C01 to C30")
    return [each for name, each in CLAIMS.items() if name in wanted or not wanted]


FILE, VERSION = "claims.json", 1


class StoredFindings(msgspec.Struct, frozen=True):
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
    """The findings of this very run; None if there are none, or only of another version or run."""
    path = run.folder / FILE
    if not path.is_file():
        return None
    try:
        found = msgspec.json.decode(path.read_bytes(), type=StoredFindings)
    except (OSError, msgspec.DecodeError):
        return None
    return found if found.version == VERSION and found.run == digest_of(run) else None
