"""One unit of work: a shard of conversations through every strategy, written to the run folder."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import msgspec

from ..metrics.tokens import TokenCounter
from ..scenarios.errors import RunError, Stopped
from ..scenarios.model import Conversation
from ..strategies.base import Strategy, budget_of
from ..strategies.chain import parse
from ..strategies.evidence_only import EvidenceOnly
from ..strategies.last_turn import LastTurn
from .answering.usual import answer_usually
from .desk import Books, RecordedDesk
from .log import Log
from .models import Models, Settings
from .probing import CEILING, FLOOR
from .probing.interview import Probed, bounded, interviewed
from .probing.rows import write_probes
from .replay import replay
from .store import PER_CELL, PER_SHARD, Part
from .why import why
from .write import digest_of, write_cells, write_recordings

Cell = tuple[Log, list[Probed]]
Asked = dict[str, list[tuple[str, list[Probed]]]]
"""By strategy the conversations with their probes."""


class Shard(msgspec.Struct, frozen=True):
    """Some consecutive conversations, and the strategies to put them through."""

    number: int
    conversations: list[Conversation]
    strategies: list[str]
    folder: str
    encoding: str
    models: Settings = Settings()
    probes: bool = True
    """Whether probes are asked."""
    answers: bool = False
    """Whether they are answered, by `offline`, and the answers graded, by `rules`."""


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
    counter, models, steps = _counter(shard.encoding), _models(shard.models), 0
    try:
        parts = [(spec, Part(folder, shard.number, at)) for at, spec in enumerate(shard.strategies)]
        todo = [(spec, part) for spec, part in parts if not _finished(part, digest)]
        books = [Books(conversation, counter) for conversation in conversations]
        recordings = Part(folder, shard.number)
        with no_cycles():
            if recordings.digest("conversations") != digest or not recordings.whole(PER_SHARD):
                write_probes(recordings, _bounds(books, shard.strategies, models, shard.probes))
                write_recordings(recordings, digests, conversations, books)
            for spec, part in todo:
                strategy = parse(spec)
                budget, wrong = _budget(strategy)
                cells = [wrong or _replayed(each, strategy, models, shard.probes) for each in books]
                write_probes(part, {spec: _probed(conversations, cells)})
                logs = [cell if isinstance(cell, str) else cell[0] for cell in cells]
                steps += write_cells(part, digest, spec, budget, books, logs)
        if shard.answers:
            answer_usually(folder, shard.number, counter, models)
    except OSError as error:
        raise RunError(f"{folder}: cannot be written: {error.strerror or error}") from None
    return Done(shard.number, len(conversations), steps, digest)


@contextmanager
def no_cycles() -> Iterator[None]:
    """No garbage collector while a shard is worked on: a log has no cycles, and walking it took a tenth of the time."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


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


@cache
def _models(settings: Settings) -> Models:
    return Models(settings)


def _replayed(books: Books, strategy: Strategy, models: Models, probes: bool) -> Cell | str:
    """One cell; if the strategy raises, why. It loses its cell and nothing else."""
    log = Log(books.conversation.messages)
    try:
        if probes and books.conversation.probes:
            return log, interviewed(books, strategy, models, log)
        for step in replay(books.conversation, strategy, RecordedDesk(books, models)):
            log.add(step)
    except Stopped:
        raise
    except (Exception, SystemExit) as error:
        return why(error)
    return log, []


def _probed(conversations: Sequence[Conversation], cells: Sequence[Cell | str]) -> list[tuple[str, list[Probed]]]:
    """The probes of the conversations that did not fail."""
    pairs = zip(conversations, cells, strict=True)
    return [(conversation.id, cell[1]) for conversation, cell in pairs if not isinstance(cell, str)]


def _bounds(books: Sequence[Books], strategies: Sequence[str], models: Models, probes: bool) -> Asked:
    """The probes of each conversation, asked of the bounds that are no strategies of the run."""
    if not probes:
        return {}
    bounds: dict[str, Strategy] = {FLOOR: LastTurn(), CEILING: EvidenceOnly()}
    return {
        name: [(each.conversation.id, bounded(each, bound, models)) for each in books]
        for name, bound in bounds.items()
        if name not in strategies
    }


def _budget(strategy: Strategy) -> tuple[int | None, str]:
    """What the strategy promises; if it cannot be had, why: then it loses its cells."""
    try:
        return budget_of(strategy), ""
    except Stopped:
        raise
    except (Exception, SystemExit) as error:
        return None, why(error)
