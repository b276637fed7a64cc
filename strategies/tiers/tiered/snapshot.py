"""Snapshots of the four tiers in one file: equal behaviour after loading, or SnapshotError (004 §8.1).

    save(tiers, path)
    tiers = load(path, record)

The file has Focus's messages and loans, Working's content with the history of its policy, the Archive's files and the
messages that wait for them, RAG's content, the index, and migration's records, heat, queue and tuning. It has no counts
for reports: the run has those. A restored archive is in memory, wherever it was before.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from ctxbench.scenarios.model import Message

from ...events import Compressed, Moved
from ..archive import ArchivedMessage, ArchiveTier, MemoryFiles
from ..archive.codec import Coding
from ..migration.alarms import Gauges
from ..migration.alarms import TierState as Gauged
from ..migration.store import Sum
from ..rag import Embed
from ..rag.rag import read_sections, write_sections
from ..snapshot_file import SnapshotReader, reading, writing
from .quotes import Prints, Quotes
from .stores import KEPT, DictStore, TierRules
from .tiers import Event, Loans, Tiers

KIND = "memory tiers"
VERSION = 3


class _State(msgspec.Struct, forbid_unknown_fields=True):
    """The state of the tiers without the Archive's files and the index."""

    version: int
    rules: dict[str, Any]
    now: float
    focus: dict[str, tuple[Message, int]]
    turn: str
    called: dict[str, float | None]
    sent: list[str]
    question: str
    working: dict[str, tuple[bytes, int]]
    rag: dict[str, tuple[bytes, int]]
    block: int
    coding: dict[str, Any]
    sizes: dict[str, int]
    waiting: list[tuple[str, int, Message]]
    written: dict[str, Sum]
    dead: dict[str, Sum]
    saved: float | None
    unreported: Compressed | None
    migration: dict[str, Any]
    moves: list[Moved]
    gauges: Gauged
    successors: dict[str, Any] | None
    prints: Prints
    files: list[str]


def save(tiers: Tiers, path: Path, model: str = "") -> None:
    """Write all tiers to a file. `model` names the embedder, if there is one. Raises SnapshotError."""
    with writing(path, KIND) as writer:
        files = tiers.blocks.archive.raw()
        writer.json("state", _state(tiers, list(files)))
        for number, data in enumerate(files.values()):
            writer.stream(f"archive.{number}", partial(_write_bytes, data))
        write_sections(tiers.index, writer, model)


def load(path: Path, record: Callable[[Event], None], embed: Embed | None = None, model: str = "") -> Tiers:
    """Read all tiers from a file. Later events go to `record`. Raises SnapshotError."""
    with reading(path, KIND) as reader:
        return _restore(reader, record, embed, model)


def _state(tiers: Tiers, files: list[str]) -> _State:
    blocks, successors = tiers.blocks, tiers.successors
    return _State(
        version=VERSION,
        rules=asdict(tiers.rules),
        now=tiers.clock.now,
        focus=tiers.focus,
        turn=tiers.loans.turn,
        called=tiers.loans.called,
        sent=sorted(tiers.loans.sent),
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
        migration=tiers.migration.snapshot(),
        moves=tiers.moves,
        gauges=tiers.gauges.state,
        successors=None if successors is None else successors.state(),
        prints=tiers.quotes.prints,
        files=files,
    )


def _restore(reader: SnapshotReader, record: Callable[[Event], None], embed: Embed | None, model: str) -> Tiers:
    state = reader.json("state", _State)
    if state.version != VERSION:
        raise reader.refuse(f"is of version {state.version}, this ctxbench reads {VERSION}: build it again")
    rules = msgspec.convert(state.rules, TierRules)
    files = {name: reader.stream(f"archive.{at}")(reader.size(f"archive.{at}")) for at, name in enumerate(state.files)}
    archive = ArchiveTier(MemoryFiles(files), msgspec.convert(state.coding, Coding), keep=KEPT)
    tiers = Tiers(rules, _ignore, embed, archive, state.block)
    tiers.clock.now, tiers.focus = state.now, state.focus
    tiers.loans = Loans(state.turn, state.called, set(state.sent))
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
    tiers.index = read_sections(reader, tiers.index.rules, embed, model)
    tiers.migration.restore(state.migration)
    tiers.moves, tiers.record = state.moves, record
    return tiers


def _hold(store: DictStore, held: dict[str, tuple[bytes, int]]) -> None:
    store.held, store.tokens = held, sum(tokens for _, tokens in held.values())


def _ignore(event: Event) -> None:
    """Ignore events while tiers are restored: they were recorded when they first happened."""


def _write_bytes(data: bytes, write: Callable[[bytes], None]) -> None:
    write(data)
