"""One unit of work: a shard of conversations through every strategy, written to the run folder."""

from __future__ import annotations

import gc
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import msgspec

from ..metrics.tokens import TokenCounter
from ..scenarios.errors import RunError, Stopped, UserError
from ..scenarios.model import Conversation
from ..strategies import base
from ..strategies.base import Misfit, Strategy, budget_of
from ..strategies.chain import parse
from .desk import Books, RecordedDesk
from .log import Log
from .models import Models, Settings
from .replay import replay
from .store import PER_CELL, PER_SHARD, Part
from .write import digest_of, write_cells, write_recordings

OURS = {Path(__file__).parent, Path(base.__file__).parent}
"""Where a sentence on what a strategy did is raised: a place there is not where it is to be mended."""


class Shard(msgspec.Struct, frozen=True):
    """Some consecutive conversations, and the strategies to put them through."""

    number: int
    conversations: list[Conversation]
    strategies: list[str]
    folder: str
    encoding: str
    models: Settings = Settings()


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
                write_recordings(recordings, digests, conversations, books)
            for spec, part in todo:
                strategy = parse(spec)
                budget, why = _budget(strategy)
                logs = [why or _replayed(each, strategy, RecordedDesk(each, models)) for each in books]
                steps += write_cells(part, digest, spec, budget, books, logs)
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


def _replayed(books: Books, strategy: Strategy, desk: RecordedDesk) -> Log | str:
    """The log of one cell; if the strategy raises, why. It loses its cell and nothing else."""
    log = Log(books.conversation.messages)
    try:
        for step in replay(books.conversation, strategy, desk):
            log.add(step)
    except Stopped:
        raise
    except (Exception, SystemExit) as error:
        return _reason(error)
    return log


def _budget(strategy: Strategy) -> tuple[int | None, str]:
    """What the strategy promises; if it cannot be had, why: then it loses its cells."""
    try:
        return budget_of(strategy), ""
    except Stopped:
        raise
    except (Exception, SystemExit) as error:
        return None, _reason(error)


def _reason(error: Exception | SystemExit) -> str:
    """Why a cell failed, in one line that can be printed and written; for what is wrong in code, with the place."""
    is_sentence = isinstance(error, UserError | Misfit)
    try:
        said = str(error)
    except Exception:  # a strategy's own exception may fail even there
        said = "(its text cannot be had)"
    text = said if is_sentence else f"{type(error).__name__}: {said}"
    frames = [] if isinstance(error, UserError) else traceback.extract_tb(error.__traceback__)
    frames = [each for each in frames if not is_sentence or Path(each.filename).parent not in OURS]
    place = f" ({Path(frames[-1].filename).name}:{frames[-1].lineno})" if frames else ""
    return " ".join((text + place).split()).encode(errors="replace").decode()
