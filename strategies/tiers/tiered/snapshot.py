"""Snapshots of the four tiers in one file, `.hctx`: equal behaviour after loading, or SnapshotError (004 §8.1).

    save(tiers, path)
    tiers = load(path, record)

The file has what `STATE` names, the migration with the history of Working's policy, the Archive's files, and RAG's
passages with their vectors.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from pathlib import Path
from typing import Any

from ctxbench.scenarios.model import Message

from ...events import Compressed, Moved
from ..archive import ArchivedMessage, ArchiveTier, BlockTable, Coding
from ..heat import Gauges
from ..migration import MigrationState
from ..rag import Embed
from ..rag import load as load_index
from ..rag import save as save_index
from ..snapshot_file import reading, writing
from ..working.successors import Successors
from . import Tiered
from .quotes import Prints
from .tiers import KEPT, Event, Loans, Tiers

KIND = "memory tiers"
Held = dict[str, tuple[Message, int]]
STATE: dict[str, Any] = {
    "clock.now": float,
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


def save(tiers: Tiers, path: Path, model: str = "") -> None:
    """Write all tiers to a file. `model` names the embedder, if there is one. Raises SnapshotError."""
    files = tiers.blocks.archive.store.all()
    with writing(path, KIND) as writer:
        writer.json("rules", tiers.rules)
        writer.json("files", list(files))
        for name, data in files.items():
            writer.bytes(f"archive/{name}", data)
        for name in STATE:
            writer.json(name, attrgetter(name)(tiers))
        writer.json("migration", tiers.migration.state())
        save_index(tiers.index, writer, model)


def load(path: Path, record: Callable[[Event], None], embed: Embed | None = None, model: str = "") -> Tiers:
    """Read all tiers from a file. Later events go to `record`. Raises SnapshotError."""
    with reading(path, KIND) as reader:
        # Events of the restoring are dropped: they were recorded when they first happened.
        tiers, store = Tiers(reader.json("rules", Tiered), lambda _: None, embed), BlockTable()
        if files := reader.json("files", list[str]):
            store.replace({name: reader.bytes(f"archive/{name}") for name in files}, ())
        tiers.blocks.archive = ArchiveTier(store, keep=KEPT)
        for name, kind in STATE.items():
            owner, _, attribute = name.rpartition(".")
            setattr(attrgetter(owner)(tiers) if owner else tiers, attribute, reader.json(name, kind))
        tiers.index = load_index(reader, tiers.index.rules, embed, model)
        tiers.migration.restore(reader.json("migration", MigrationState))
        tiers.record = record
        return tiers
