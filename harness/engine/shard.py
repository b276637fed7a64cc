"""The work on a shard, some consecutive conversations, in tasks: each writes one part of the run folder.

The shard's own part comes first: its conversations, and the bounds of its probes. Then one part for each strategy, in
any order, by any worker. The answers to its probes come last, since they read all other parts.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ctxbench.metrics.tokens import TokenCounter
from ctxbench.scenarios.errors import RunError
from ctxbench.scenarios.model import Conversation
from ctxbench.strategies.base import Strategy, budget_of
from ctxbench.strategies.bounds import EvidenceOnly, LastTurn
from ctxbench.strategies.chain import parse

from ..answers.replies import answer_shard
from ..answers.tally import EVENTS_OF_PROBES, strategy_tallies
from ..folder.files import joint_digest
from ..folder.remote import remote_folder
from ..folder.schema import SCHEMAS
from ..folder.store import ResultPart, parts_of, read_conversations, unwritable
from ..models import Models, Settings
from ..probes import CEILING, FLOOR, ProbeRow, ask_bounds, ask_probes, write_probes
from ..replay import ContextLog, ConversationIndex, RecordedContext, attempted, replay
from .tables import write_cells, write_recordings

OWN, ANSWERS = -1, -2
"""Parts of a shard that are no strategy's."""


class Work(msgspec.Struct, frozen=True):
    """The work of a run, which is the same for every shard."""

    folder: str
    strategies: tuple[str, ...]
    encoding: str
    models: Settings = Settings()
    probes: bool = True
    """Whether probes are asked."""
    answers: bool = False
    """Whether they are answered: by `offline`, and by the model whose replies to them come along. `rules` grade."""
    remote: str = ""
    """Address of the store that each part is put into when it is finished, if the folder is a copy of one."""

    @property
    def parts(self) -> list[int]:
        """The parts of a shard, in an order in which they can be written."""
        return [OWN, *range(len(self.strategies)), *([ANSWERS] if self.answers else [])]


class PartTask(msgspec.Struct, frozen=True):
    """One part of one shard, to be written."""

    work: Work
    shard: int
    part: int
    """Number of the strategy, OWN or ANSWERS."""
    conversations: tuple[Conversation, ...] = ()
    """The shard's, with its own part. Whoever writes another one reads them from the folder, or has them still."""


class Done(msgspec.Struct, frozen=True):
    """Report of a task whose files are written."""

    shard: int
    part: int
    digest: str
    """Of the shard's conversations."""
    steps: int = 0
    """Steps replayed now; none if the part was finished before."""


class PartWriter:
    """Writes parts. It keeps the shards that it was last asked for in memory, indexed."""

    def __init__(self, kept: int = 1) -> None:
        """Keep so many shards: two where a worker helps with the shard of another one."""
        self._kept = kept
        self._shards: dict[tuple[Work, int], _OpenShard] = {}

    def do(self, task: PartTask) -> Done:
        """Write a part, unless it is there. Raises RunError if it cannot be written."""
        work, number = task.work, task.shard
        try:
            shard = self._opened(task)
            steps: int | None = None
            with no_cycles():
                if task.part == ANSWERS:
                    answer_shard(Path(work.folder), number, shard.counter, shard.models)
                else:
                    steps = shard.write_own() if task.part == OWN else shard.write_part(task.part)
            if work.remote:
                remote = remote_folder(work.remote, work.folder)
                if task.part == ANSWERS:
                    remote.push_answers(number)
                elif steps is not None:
                    remote.push_part(ResultPart(remote.copy, number, None if task.part == OWN else task.part))
        except OSError as error:
            raise unwritable(Path(work.folder), error) from None
        except pa.ArrowException as error:
            raise RunError(f"{work.folder}: a part is damaged ({error}): run again with --overwrite") from None
        return Done(number, task.part, shard.digest, steps or 0)

    def _opened(self, task: PartTask) -> _OpenShard:
        key = task.work, task.shard  # a process of a cluster outlives a run
        # The own part comes with its conversations, so it opens the shard anew; the others find it here or read the
        # folder.
        shard = None if task.part == OWN else self._shards.pop(key, None)
        if shard is None:
            while len(self._shards) >= self._kept:
                del self._shards[next(iter(self._shards))]
            path = ResultPart(Path(task.work.folder), task.shard).path("recordings")
            shard = _OpenShard(task.work, task.shard, task.conversations or tuple(read_conversations(path)))
        self._shards[key] = shard  # as the newest
        return shard


class _OpenShard:
    """A shard in memory: its conversations, and what is known of them under any strategy."""

    def __init__(self, work: Work, number: int, conversations: Sequence[Conversation]) -> None:
        self.counter, self.models = _counter(work.encoding), _models(work.models)
        self._work, self._conversations = work, conversations
        self._own, *self._parts = parts_of(Path(work.folder), number, len(work.strategies))
        self._digests = [conversation.digest() for conversation in conversations]
        self.digest = joint_digest(self._digests)
        self._indexes = [ConversationIndex(conversation, self.counter) for conversation in conversations]

    def write_own(self) -> int | None:
        """Write the conversations, and ask the bounds their probes. Returns 0 steps, or None if all is there.

        Raises RunError if other conversations are there.
        """
        work, own = self._work, self._own
        if own.is_whole():
            if pq.read_table(own.path("conversations"), columns=["digest"])["digest"].to_pylist() != self._digests:
                raise RunError(
                    f"{work.folder}: the recordings or their questions are not what they were (shard {own.name}): "
                    "run with --overwrite, or name another --out"
                )
            return None
        own.remove()
        bounds: dict[str, Strategy] = {FLOOR: LastTurn(), CEILING: EvidenceOnly()}
        probes = {
            name: [(index.conversation.id, ask_bounds(index, bound, self.models)) for index in self._indexes]
            for name, bound in bounds.items()
            if work.probes and name not in work.strategies
        }
        write_probes(own, probes)
        write_recordings(own, self._digests, self._conversations, self._indexes)
        return 0

    def write_part(self, at: int) -> int | None:
        """Replay the conversations through a strategy and measure it. Returns the steps, or None if all is there."""
        work, part, spec = self._work, self._parts[at], self._work.strategies[at]
        # What a stopped run finished is not made again, but where calls of its models failed.
        if part.is_whole() and not _has_failed_calls(part, work.models):
            return None
        part.remove()
        strategy = parse(spec)
        budget = attempted(lambda: budget_of(strategy))
        outcomes = [
            budget if isinstance(budget, str) else _replayed(index, strategy, self.models, work.probes)
            for index in self._indexes
        ]
        pairs = zip(self._conversations, outcomes, strict=True)
        # Conversations that failed have no probes.
        probed = [(said.id, outcome[1]) for said, outcome in pairs if not isinstance(outcome, str)]
        write_probes(part, {spec: probed})
        logs = [outcome if isinstance(outcome, str) else outcome[0] for outcome in outcomes]
        known = None if isinstance(budget, str) else budget
        return write_cells(part, spec, known, self._indexes, logs, self._repeats(logs, strategy))

    def _repeats(self, logs: Sequence[ContextLog | str], strategy: Strategy) -> list[bool | None]:
        """Replay one conversation a second time, and return for each whether it sent the same; None for the others.

        It is the shortest one of at least 20 calls, or else the longest.
        """
        sizes = {at: len(log.runs.at) for at, log in enumerate(logs) if isinstance(log, ContextLog)}
        repeats: list[bool | None] = [None] * len(logs)
        if sizes:
            # A replay of 20 calls is long enough for a strategy to act, and short enough to be made twice.
            long = [at for at, size in sizes.items() if size >= 20]
            at = min(long, key=sizes.__getitem__) if long else max(sizes, key=sizes.__getitem__)
            first, again = logs[at], _replayed(self._indexes[at], strategy, self.models, probes=False)
            repeats[at] = isinstance(first, ContextLog) and not isinstance(again, str) and first.sends_as(again[0])
        return repeats


_WRITER = PartWriter(kept=2)


def do_bundle(tasks: list[PartTask]) -> list[Done]:
    """Do tasks in a worker process, which has the shards of its last tasks in memory."""
    return [_WRITER.do(task) for task in tasks]


def do_packed(tasks: bytes) -> list[Done]:
    """Do tasks that came as MessagePack."""
    return do_bundle(msgspec.msgpack.decode(tasks, type=list[PartTask]))


@contextmanager
def no_cycles() -> Iterator[None]:
    """Turn the garbage collector off for a while.

    Logs, and what a reader of contexts remembers, have no cycles; walking them took a tenth of the time of a replay and
    a fifth of that of answering.
    """
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def _has_failed_calls(part: ResultPart, models: Settings) -> bool:
    """Return whether a call of the strategy's models had no reply. A reply that is of no use is one."""
    paths = {name: part.path(name) for name in ("events", "probes")}
    events, probes = (
        pq.read_table(path, schema=SCHEMAS[name]) if path.exists() else SCHEMAS[name].empty_table()
        for name, path in paths.items()
    )
    probes = probes.select(EVENTS_OF_PROBES)
    texts = (events["event"], pc.list_flatten(probes["events"]))
    # `failed` is the tag of an event and stands first in its JSON. A part without any needs no tallies.
    if not any(pc.any(pc.starts_with(column, '{"event":"failed"')).as_py() for column in texts):
        return False
    tallies = strategy_tallies(events.to_pandas(), probes.to_pandas(), models.summariser, models.embedder)
    return any(tally.failed for tally in tallies)


# Both live as long as the process, so that the shards of a worker share counts and open connections.
_counter, _models = cache(TokenCounter), cache(Models)


def _replayed(
    index: ConversationIndex, strategy: Strategy, models: Models, probes: bool
) -> tuple[ContextLog, list[ProbeRow]] | str:
    """Replay one conversation through one strategy. If the strategy raises, return why: it loses this result alone."""

    def outcome() -> tuple[ContextLog, list[ProbeRow]]:
        log = ContextLog(index.conversation.messages)
        if probes and index.conversation.probes:
            return log, ask_probes(index, strategy, models, log)
        for step in replay(index.conversation, strategy, RecordedContext(index, models)):
            log.add(step)
        return log, []

    return attempted(outcome)
