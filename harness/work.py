"""One unit of work: a shard of conversations through every strategy, written to the run folder."""

from __future__ import annotations

import hashlib
import traceback
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from ..metrics.structure import Faults
from ..metrics.tokens import TokenCounter
from ..scenarios.errors import RunError, UserError
from ..scenarios.model import Conversation
from ..strategies.base import Strategy, budget_of
from ..strategies.chain import parse
from .desk import RecordedDesk
from .log import Log
from .replay import Step, replay
from .store import Part, message_json

_PACKED = msgspec.msgpack.Decoder(list[Conversation])


@dataclass(frozen=True, slots=True)
class Shard:
    """Some consecutive conversations, packed for the way to a worker, and the strategies to put them through."""

    number: int
    conversations: bytes
    digest: str
    strategies: tuple[tuple[int, str], ...]
    """(place in the run's list, spec) of those still to do."""
    folder: Path
    encoding: str
    write_recordings: bool

    @classmethod
    def pack(cls, conversations: Sequence[Conversation]) -> bytes:
        """Conversations as bytes."""
        return msgspec.msgpack.encode(conversations)


def digest_of(conversations: Sequence[Conversation]) -> str:
    """One digest for several conversations, in order."""
    return hashlib.sha256("".join(f"{c.id} {c.digest()}\n" for c in conversations).encode()).hexdigest()


def work(shard: Shard) -> int:
    """Put a shard through its strategies and write every part. Returns the number of steps."""
    conversations = _PACKED.decode(shard.conversations)
    counter = _counter(shard.encoding)
    desks = [RecordedDesk(conversation, counter) for conversation in conversations]
    try:
        if shard.write_recordings:
            _write_recordings(shard, conversations, desks)
        return sum(_write_cells(shard, number, spec, conversations, desks) for number, spec in shard.strategies)
    except OSError as error:
        raise RunError(f"{shard.folder}: cannot be written: {error.strerror or error}") from None


@cache
def _counter(encoding: str) -> TokenCounter:
    return TokenCounter(encoding)


def _write_recordings(shard: Shard, conversations: list[Conversation], desks: list[RecordedDesk]) -> None:
    part = Part(shard.folder, shard.number)
    part.write_recordings(conversations)
    rows: dict[str, list[Any]] = defaultdict(list)
    for conversation, desk in zip(conversations, desks, strict=True):
        desk.advance(len(conversation.messages))
        tokens = [desk.ledger.said(at) for at in range(len(conversation.messages))]
        for at, message in enumerate(conversation.messages):
            usage = message.call.usage if message.call else None
            rows["conversation"].append(conversation.id)
            rows["at"].append(at)
            rows["id"].append(message.id)
            rows["role"].append(message.role)
            rows["tokens"].append(tokens[at])
            rows["time"].append(message.time)
            rows["model"].append(message.call.model if message.call else None)
            rows["usage_input"].append(usage.input if usage else None)
            rows["usage_output"].append(usage.output if usage else None)
            rows["usage_cache_read"].append(usage.cache_read if usage else None)
            rows["usage_cache_write"].append(usage.cache_write if usage else None)
            rows["usage_cost"].append(usage.cost if usage else None)
    part.write("messages", rows)
    part.write(
        "conversations",
        {
            "conversation": [c.id for c in conversations],
            "digest": [c.digest() for c in conversations],
            "source": [c.source for c in conversations],
            "licence": [c.licence for c in conversations],
            "language": [c.language for c in conversations],
            "messages": [len(c.messages) for c in conversations],
            "calls": [sum(1 for _ in c.calls()) for c in conversations],
            "probes": [len(c.probes) for c in conversations],
            "tokens": [desk.ledger.upto(len(c.messages)) for c, desk in zip(conversations, desks, strict=True)],
            "tools_tokens": [desk.tools(c.tools) for c, desk in zip(conversations, desks, strict=True)],
            "meta": [msgspec.json.encode(c.meta).decode() for c in conversations],
        },
    )


@dataclass(slots=True)
class _Cells:
    """The rows of one strategy over a shard, column by column."""

    spec: str
    steps: list[Step] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    contexts: dict[str, list[Any]] = field(default_factory=lambda: defaultdict(list))
    cells: dict[str, list[Any]] = field(default_factory=lambda: defaultdict(list))

    def add(self, conversation: Conversation, strategy: Strategy, desk: RecordedDesk) -> None:
        """Replay one cell. A strategy that raises loses its cell, with the reason, and nothing else."""
        log = Log(conversation.messages)
        status, detail, steps = "ok", "", []
        try:
            steps = list(replay(conversation, strategy, desk, log))
        except Exception as error:
            status, detail, steps = "failed", _reason(error), []
        else:
            self.steps += steps
            self.names += [conversation.id] * len(steps)
            for number, message in enumerate(log.written):
                self.contexts["conversation"].append(conversation.id)
                self.contexts["number"].append(number)
                self.contexts["tokens"].append(desk.tokens(message))
                self.contexts["message"].append(message_json(message))
        self.cells["conversation"].append(conversation.id)
        self.cells["status"].append(status)
        self.cells["detail"].append(detail)
        self.cells["steps"].append(len(steps))
        self.cells["budget"].append(budget_of(strategy))


def _write_cells(
    shard: Shard, number: int, spec: str, conversations: list[Conversation], desks: list[RecordedDesk]
) -> int:
    strategy, rows = parse(spec), _Cells(spec)
    for conversation, desk in zip(conversations, desks, strict=True):
        rows.add(conversation, strategy, desk)
    part = Part(shard.folder, shard.number, number)
    names = {"conversation": rows.names, "strategy": [spec] * len(rows.names)}
    columns = dict(zip(Step._fields, zip(*rows.steps, strict=True), strict=True)) if rows.steps else {}
    steps: dict[str, Sequence[Any]] = {key: columns.get(key, ()) for key in Step._fields}
    faults = zip(*steps.pop("faults"), strict=True) if rows.steps else ((),) * len(Faults._fields)
    steps |= dict(zip(Faults._fields, faults, strict=True))
    part.write("timings", {**names, "step": steps["step"], "decide_ns": steps.pop("decide_ns")})
    if rows.contexts:
        part.write("contexts", {**rows.contexts, "strategy": [spec] * len(rows.contexts["number"])})
    part.write("steps", {**names, **steps})
    note = {"shard": shard.digest, "strategy": spec}
    part.write("cells", {**rows.cells, "strategy": [spec] * len(conversations)}, note)
    return len(rows.steps)


def _reason(error: Exception) -> str:
    """Why a cell failed, in one line; for what is not the user's to mend, with the place in the code."""
    text = f"{type(error).__name__}: {error}" if not isinstance(error, UserError) else str(error)
    last = traceback.extract_tb(error.__traceback__)[-1]
    place = "" if isinstance(error, UserError) else f" ({Path(last.filename).name}:{last.lineno})"
    return text.replace("\n", " ") + place
