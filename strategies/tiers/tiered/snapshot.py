"""Snapshots of the four tiers in one file, `.hctx`: equal behaviour after loading, or SnapshotError (004 §8.1).

    save(tiers, path)
    tiers = load(path, record)

The file has Focus's messages and loans, Working's content with the history of its policy, the Archive's files and the
messages that wait for them, RAG's content, the index, and migration's locations, heat, queue and tuning. A restored
archive is in memory, wherever it was before.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import msgspec

from ctxbench.scenarios.model import Message

from ...events import Compressed, Moved
from ..archive import ArchivedMessage, ArchiveTier, BlockTable
from ..archive.codec import Coding
from ..migration.alarms import Gauges, GaugesState
from ..migration.migration import MigrationState, Sum
from ..rag import Embed
from ..rag import load as load_index
from ..rag import save as save_index
from ..snapshot_file import SnapshotReader, reading, writing
from .quotes import Prints, Quotes
from .session import Tiered
from .stores import KEPT, DictStore
from .tiers import Event, Loans, Tiers

KIND = "memory tiers"
Held = dict[str, tuple[bytes, int]]


class _State(msgspec.Struct, forbid_unknown_fields=True):
    """The state of the tiers without the Archive's files and the index."""

    rules: dict[str, Any]
    now: float
    focus: dict[str, tuple[Message, int]]
    loans: Loans
    question: str
    working: Held
    rag: Held
    block: int
    coding: dict[str, Any]
    sizes: dict[str, int]
    waiting: list[tuple[str, int, Message]]
    written: dict[str, Sum]
    dead: dict[str, Sum]
    saved: float | None
    unreported: Compressed | None
    migration: MigrationState
    moves: list[Moved]
    gauges: GaugesState
    successors: dict[str, Any] | None
    prints: Prints
    files: list[str]


def save(tiers: Tiers, path: Path, model: str = "") -> None:
    """Write all tiers to a file. `model` names the embedder, if there is one. Raises SnapshotError."""
    blocks, successors, files = tiers.blocks, tiers.successors, tiers.blocks.archive.store.all()
    state = _State(
        rules=asdict(tiers.rules),
        now=tiers.clock.now,
        focus=tiers.focus,
        loans=tiers.loans,
        question=tiers.question,
        working=tiers.working.held,
        rag=tiers.rag.held,
        block=blocks.block,
        coding=asdict(blocks.archive.coding),
        sizes=blocks.sizes,
        waiting=[(item.id, item.tokens, item.message) for item in blocks.waiting.values()],
        written=blocks.written,
        dead=blocks.dead,
        saved=blocks.saved,
        unreported=blocks.unreported,
        migration=tiers.migration.state(),
        moves=tiers.moves,
        gauges=tiers.gauges.state,
        successors=None if successors is None else successors.state(),
        prints=tiers.quotes.prints,
        files=list(files),
    )
    with writing(path, KIND) as writer:
        writer.json("state", state)
        for name, data in files.items():
            writer.bytes(f"archive/{name}", data)
        save_index(tiers.index, writer, model)


def load(path: Path, record: Callable[[Event], None], embed: Embed | None = None, model: str = "") -> Tiers:
    """Read all tiers from a file. Later events go to `record`. Raises SnapshotError."""
    with reading(path, KIND) as reader:
        return _restored(reader, record, embed, model)


def _restored(reader: SnapshotReader, record: Callable[[Event], None], embed: Embed | None, model: str) -> Tiers:
    state, store = reader.json("state", _State), BlockTable()
    if state.files:
        store.replace({name: reader.bytes(f"archive/{name}") for name in state.files}, ())
    archive = ArchiveTier(store, msgspec.convert(state.coding, Coding), keep=KEPT)
    tiers = Tiers(msgspec.convert(state.rules, Tiered), _ignore, embed, archive, state.block)
    tiers.clock.now, tiers.focus, tiers.loans = state.now, state.focus, state.loans
    tiers.question, tiers.gauges, tiers.quotes = state.question, Gauges(state.gauges), Quotes(state.prints)
    _hold(tiers.working, state.working)
    _hold(tiers.rag, state.rag)
    blocks = tiers.blocks
    blocks.sizes, blocks.written, blocks.dead, blocks.saved = state.sizes, state.written, state.dead, state.saved
    blocks.unreported = state.unreported
    blocks.waiting = {id: ArchivedMessage(id, tokens, message) for id, tokens, message in state.waiting}
    blocks.tokens = sum(state.sizes.values())
    if tiers.successors is not None and state.successors is not None:
        tiers.successors.restore(state.successors)
    tiers.index = load_index(reader, tiers.index.rules, embed, model)
    tiers.migration.restore(state.migration)
    tiers.moves, tiers.record = state.moves, record
    return tiers


def _hold(store: DictStore, held: Held) -> None:
    store.held, store.tokens = held, sum(tokens for _, tokens in held.values())


def _ignore(event: Event) -> None:
    """Ignore events while tiers are restored: they were recorded when they first happened."""
