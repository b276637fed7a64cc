"""Snapshots of the four tiers in one file, `.hctx`: equal behaviour after loading, or SnapshotError (004 §8.1).

    save(tiers, path)
    tiers = load(path, record)

The file has a line with the version, a MessagePack map, and the CRC-32C of both. The map has what `STATE` names, the
migration with the history of Working's policy, the Archive's files, and RAG's passages, which are indexed and embedded
again. Nothing is pickled.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from pathlib import Path
from typing import Any

import msgspec

from ctxbench.scenarios.errors import UserError
from ctxbench.scenarios.model import Message

from ...events import Compressed, Moved
from ..archive import ArchivedMessage, ArchiveTier, BlockTable, Coding
from ..archive.part import checksum
from ..heat import Gauges
from ..migration import MigrationState
from ..rag import Embed, Passage
from ..working.policy import Successors
from . import Tiered
from .quotes import Prints
from .tiers import KEPT, Event, Loans, Tiers

HEAD = b"ctxbench memory tiers 5\n"
Held = dict[str, tuple[Message, int]]
STATE: dict[str, Any] = {
    "now": float,
    "focus": Held,
    "loans": Loans,
    "question": str,
    "working.held": Held,
    "working.tokens": int,
    "rag.held": Held,
    "rag.tokens": int,
    "blocks.archive.coding": Coding,
    "blocks.sizes": dict[str, int],
    "blocks.tokens": int,
    "blocks.waiting": dict[str, ArchivedMessage],
    "blocks.written": dict[str, int],
    "blocks.dead": dict[str, int],
    "blocks.saved": float | None,
    "blocks.unreported": Compressed | None,
    "gauges": Gauges,
    "successors": Successors | None,
    "quotes.prints": Prints,
    "moves": list[Moved],
}
"""Attributes of the tiers that are written as they are, with their types."""


class SnapshotError(UserError):
    """A snapshot that cannot be written, read or used."""


def save(tiers: Tiers, path: Path) -> None:
    """Write all tiers to a file. Raises SnapshotError. One that is cut off is refused when it is read."""
    state = {name: attrgetter(name)(tiers) for name in STATE}
    state |= {"rules": tiers.rules, "files": tiers.blocks.archive.store.all(), "passages": tiers.index.passages}
    body = HEAD + msgspec.msgpack.encode(state | {"migration": tiers.migration.state()})
    try:
        path.write_bytes(body + checksum(body).to_bytes(4))
    except OSError as error:
        raise SnapshotError(f"{path}: cannot be written: {error.strerror or error}") from None


def load(path: Path, record: Callable[[Event], None], embed: Embed | None = None) -> Tiers:
    """Read all tiers from a file. Later events go to `record`. Raises SnapshotError."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise SnapshotError(f"{path}: cannot be read: {error.strerror or error}") from None
    body = data[:-4]
    if not body.startswith(HEAD):
        raise SnapshotError(f"{path}: does not begin with {HEAD.decode().strip()!r}: write it again")
    if data[-4:] != checksum(body).to_bytes(4):
        raise SnapshotError(f"{path}: is altered or cut off: write it again")
    try:
        return _restored(msgspec.msgpack.decode(body[len(HEAD) :], type=dict[str, msgspec.Raw]), record, embed)
    except (msgspec.MsgspecError, UserError, ValueError, TypeError, LookupError, AttributeError) as error:
        raise SnapshotError(f"{path}: cannot be restored: {error}: write it again") from None


def _restored(state: dict[str, msgspec.Raw], record: Callable[[Event], None], embed: Embed | None) -> Tiers:
    def read(name: str, kind: Any) -> Any:
        return msgspec.msgpack.decode(state[name], type=kind)

    # Events of the restoring are dropped: they were recorded when they first happened.
    tiers, store = Tiers(read("rules", Tiered), lambda _: None, embed), BlockTable()
    if files := read("files", dict[str, bytes]):
        store.replace(files, ())
    tiers.blocks.archive = ArchiveTier(store, keep=KEPT)
    for name, kind in STATE.items():
        owner, _, attribute = name.rpartition(".")
        setattr(attrgetter(owner)(tiers) if owner else tiers, attribute, read(name, kind))
    tiers.index.restore(read("passages", list[Passage | None]))
    tiers.migration.restore(read("migration", MigrationState))
    tiers.record = record
    return tiers
