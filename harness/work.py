"""One unit of work: a shard of conversations through every strategy, written to the run folder."""

from __future__ import annotations

import gc
import hashlib
import traceback
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from itertools import pairwise
from pathlib import Path

import msgspec

from ..metrics.measure import Cell, measure
from ..metrics.tokens import TokenCounter
from ..scenarios.errors import RunError, UserError
from ..scenarios.model import Call, Conversation, Usage
from ..strategies.base import Strategy, budget_of
from ..strategies.chain import parse
from .desk import RecordedDesk
from .log import Log
from .replay import replay
from .store import PER_CELL, PER_SHARD, Constant, Part

NO_CALL, NO_USAGE = Call(), Usage()


class Shard(msgspec.Struct, frozen=True):
    """Some consecutive conversations, and the strategies to put them through."""

    number: int
    conversations: list[Conversation]
    strategies: list[str]
    folder: str
    encoding: str


class Done(msgspec.Struct, frozen=True):
    """What comes back of a shard: its files are written."""

    number: int
    conversations: int
    steps: int
    """Steps replayed now; those of parts that were finished before are not in it."""
    digest: str


def work_packed(shard: bytes) -> Done:
    """`work` for a shard that came as MessagePack, as workers get them."""
    return work(msgspec.msgpack.decode(shard, type=Shard))


def work(shard: Shard) -> Done:
    """Put a shard through its strategies and write every part that is not there yet."""
    folder, conversations = Path(shard.folder), shard.conversations
    digests = [conversation.digest() for conversation in conversations]
    digest = digest_of(digests)
    counter, steps = _counter(shard.encoding), 0
    try:
        parts = [(spec, Part(folder, shard.number, at)) for at, spec in enumerate(shard.strategies)]
        todo = [(spec, part) for spec, part in parts if not _finished(part, digest)]
        desks = [RecordedDesk(conversation, counter) for conversation in conversations]
        recordings = Part(folder, shard.number)
        with _no_cycles():
            if recordings.digest("conversations") != digest or not recordings.whole(PER_SHARD):
                _write_recordings(recordings, digests, conversations, desks)
            for spec, part in todo:
                steps += _write_cells(part, digest, spec, conversations, desks)
    except OSError as error:
        raise RunError(f"{folder}: cannot be written: {error.strerror or error}") from None
    return Done(shard.number, len(conversations), steps, digest)


@contextmanager
def _no_cycles() -> Iterator[None]:
    """No garbage collector while a shard is worked on: a log has no cycles, and walking it took a tenth of the time."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def digest_of(digests: Iterable[str]) -> str:
    """One digest for several, in order."""
    return hashlib.sha256("\n".join(digests).encode()).hexdigest()


def _finished(part: Part, digest: str) -> bool:
    found = part.digest("cells")
    if found not in (None, digest):
        raise RunError(
            f"{part.folder}: the recordings are not what they were when this run began (shard {part.name}): "
            "run with --overwrite, or name another --out"
        )
    return found is not None and part.whole(PER_CELL)


@cache
def _counter(encoding: str) -> TokenCounter:
    return TokenCounter(encoding)


def _write_recordings(
    part: Part, digests: list[str], conversations: list[Conversation], desks: list[RecordedDesk]
) -> None:
    """Write a shard's conversations: whole, and as the two tables on them."""
    part.write_recordings(conversations)
    sizes = [len(conversation.messages) for conversation in conversations]
    messages = [message for conversation in conversations for message in conversation.messages]
    running = [desk.ledger.running(size) for desk, size in zip(desks, sizes, strict=True)]
    calls = [message.call or NO_CALL for message in messages]
    usage = [call.usage or NO_USAGE for call in calls]
    part.write(
        "messages",
        {
            "conversation": [c.id for c, size in zip(conversations, sizes, strict=True) for _ in range(size)],
            "at": [at for size in sizes for at in range(size)],
            "id": [message.id for message in messages],
            "role": [message.role for message in messages],
            "tokens": [after - before for each in running for before, after in pairwise(each)],
            "time": [message.time for message in messages],
            "model": [call.model or None for call in calls],
            "usage_input": [each.input for each in usage],
            "usage_output": [each.output for each in usage],
            "usage_cache_read": [each.cache_read for each in usage],
            "usage_cache_write": [each.cache_write for each in usage],
            "usage_cost": [each.cost for each in usage],
            "compacted": [each for conversation in conversations for each in _compacted(conversation)],
        },
    )
    part.write(
        "conversations",
        {
            "conversation": [c.id for c in conversations],
            "digest": digests,
            "source": [c.source for c in conversations],
            "licence": [c.licence for c in conversations],
            "language": [c.language for c in conversations],
            "messages": sizes,
            "calls": [sum(1 for _ in c.calls()) for c in conversations],
            "probes": [len(c.probes) for c in conversations],
            "tokens": [each[-1] for each in running],
            "tools_tokens": [desk.tools(c.tools) for c, desk in zip(conversations, desks, strict=True)],
            "meta": [msgspec.json.encode(c.meta).decode() for c in conversations],
        },
        digest_of(digests),
    )


def _compacted(conversation: Conversation) -> Iterator[bool]:
    """Whether a recorded compaction stands before each message."""
    after = {compaction.after for compaction in conversation.compactions}
    seen = False
    for message in conversation.messages:
        yield seen
        seen = seen or message.id in after


def _write_cells(
    part: Part, digest: str, spec: str, conversations: list[Conversation], desks: list[RecordedDesk]
) -> int:
    """Replay every conversation through one strategy, measure all, write the part's tables."""
    strategy, budget = parse(spec), budget_of(parse(spec))
    logs = [_replayed(each, strategy, desk) for each, desk in zip(conversations, desks, strict=True)]
    good = [at for at, log in enumerate(logs) if isinstance(log, Log)]
    cells = [cell_of(conversations[at], desks[at], log, budget) for at, log in enumerate(logs) if isinstance(log, Log)]
    steps = [len(cell.runs.at) for cell in cells]
    names = {
        "conversation": [conversations[at].id for at, count in zip(good, steps, strict=True) for _ in range(count)],
        "strategy": Constant(spec, sum(steps)),
    }
    measured = measure(cells)
    times = [time for log in logs if isinstance(log, Log) for time in log.decide_ns]
    marks = [mark for log in logs if isinstance(log, Log) for mark in log.marks]
    part.write("timings", {**names, "step": measured["step"], "decide_ns": times})
    _write_contexts(part, spec, [(conversations[at].id, desks[at], cell) for at, cell in zip(good, cells, strict=True)])
    part.write("steps", {**names, **measured, "marks": marks})
    part.write(
        "cells",
        {
            "conversation": [conversation.id for conversation in conversations],
            "strategy": Constant(spec, len(conversations)),
            "status": ["ok" if isinstance(log, Log) else "failed" for log in logs],
            "detail": ["" if isinstance(log, Log) else log for log in logs],
            "steps": [len(log.runs.at) if isinstance(log, Log) else 0 for log in logs],
            "budget": [budget] * len(logs),
        },
        digest,
    )
    return sum(steps)


def _replayed(conversation: Conversation, strategy: Strategy, desk: RecordedDesk) -> Log | str:
    """The log of one cell; if the strategy raises, why. It loses its cell and nothing else."""
    log = Log(conversation.messages)
    try:
        for step in replay(conversation, strategy, desk):
            log.add(step)
    except Exception as error:
        return _reason(error)
    return log


def cell_of(conversation: Conversation, desk: RecordedDesk, log: Log, budget: int | None) -> Cell:
    """A replayed cell, ready to be measured."""
    return Cell(
        recording=conversation.messages,
        written=log.written,
        ledger=desk.ledger,
        structure=desk.structure,
        runs=log.runs,
        tools=[desk.tools(tools) for tools in log.tools],
        tools_full=desk.tools(conversation.tools),
        budget=budget,
    )


def _write_contexts(part: Part, spec: str, cells: Iterable[tuple[str, RecordedDesk, Cell]]) -> None:
    """Write the messages that the strategy wrote, if it wrote any."""
    rows = [
        (name, number, desk.tokens(message), msgspec.json.encode(message).decode())
        for name, desk, cell in cells
        for number, message in enumerate(cell.written)
    ]
    if rows:
        names, numbers, tokens, messages = zip(*rows, strict=True)
        columns = {"conversation": names, "number": numbers, "tokens": tokens, "message": messages}
        part.write("contexts", {**columns, "strategy": Constant(spec, len(rows))})


def _reason(error: Exception) -> str:
    """Why a cell failed, in one line; for what is not the user's to mend, with the place in the code."""
    text = f"{type(error).__name__}: {error}" if not isinstance(error, UserError) else str(error)
    last = traceback.extract_tb(error.__traceback__)[-1]
    place = "" if isinstance(error, UserError) else f" ({Path(last.filename).name}:{last.lineno})"
    return text.replace("\n", " ") + place
