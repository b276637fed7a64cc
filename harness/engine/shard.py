"""The work on a shard, some consecutive conversations, in tasks: each writes one part of the run folder.

The shard's own part comes first: its conversations, and the bounds of its probes. Then one part for each strategy, in
any order, by any worker. The answers to its probes come last, since they read all other parts.
"""

from __future__ import annotations

import functools
import gc
import math
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import sha256
from itertools import accumulate, pairwise
from operator import or_
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from ctxbench.metrics.constraints import retained_constraints
from ctxbench.metrics.grounding import by_row, lines_of, refetched, retained
from ctxbench.metrics.measure import MeasuredResult, measure, stretches
from ctxbench.metrics.survival import Round, survival
from ctxbench.metrics.tokens import TokenCounter
from ctxbench.metrics.values import Ints
from ctxbench.metrics.visibility import counted, used_results, visible
from ctxbench.scenarios.errors import RunError
from ctxbench.scenarios.model import Call, Conversation, Usage
from ctxbench.strategies.base import Strategy, budget_of
from ctxbench.strategies.bounds import EvidenceOnly, LastTurn
from ctxbench.strategies.chain import packages, parse
from ctxbench.strategies.events import Called, Compressed, Moved, Recalled, Summarised

from .. import cache
from ..folder.files import joint_digest
from ..folder.remote import remote_folder
from ..folder.schema import SCHEMAS
from ..folder.store import (
    ResultPart,
    Tables,
    joined,
    packed,
    parts_of,
    read_conversations,
    table_of,
    unpacked,
    unwritable,
)
from ..models import Models, Settings
from ..models.settings import named
from ..probes import CEILING, FLOOR, ProbeRow, ask_bounds, ask_probes, table_of_probes
from ..replay import ContextLog, ConversationIndex, RecordedContext, attempted, replay

OWN, ANSWERS = -1, -2  # parts of a shard that are no strategy's


class Work(msgspec.Struct, frozen=True):
    """The work of a run, which is the same for every shard."""

    folder: str
    strategies: tuple[str, ...]
    encoding: str
    models: Settings = Settings()
    probes: bool = True  # whether probes are asked
    answers: bool = False
    """Whether they are answered: by `offline`, and by the model whose replies to them come along. `rules` grade."""
    basis: str = ""
    """Digest of what all results depend on but for recording, strategy and summariser; empty = none are kept."""
    remote: str = ""
    """Address of the store that each part is put into when it is finished, if the folder is a copy of one."""
    here: tuple[int, ...] = ()
    """Numbers of the strategies that this process alone can replay: a notebook or a script has defined them."""

    @property
    def parts(self) -> list[int]:
        """The parts of a shard, in an order in which they can be written."""
        return [OWN, *range(len(self.strategies)), *([ANSWERS] if self.answers else [])]


class PartTask(msgspec.Struct, frozen=True):
    """One part of one shard, to be written."""

    work: Work
    shard: int
    part: int  # number of the strategy, OWN or ANSWERS
    conversations: tuple[Conversation, ...] = ()
    """The shard's, with its own part. Whoever writes another one reads them from the folder, or has them still."""


class Done(msgspec.Struct, frozen=True):
    """Report of a task whose files are written."""

    shard: int
    part: int
    digest: str  # of the shard's conversations
    steps: int = 0  # steps replayed now; none if the part was finished before


_leaving: list[Any] = []  # os._exit as it was, once for each part that threads write now


@contextmanager
def _exit_raises() -> Iterator[None]:
    """Have os._exit raise SystemExit: a strategy that calls it fails, and does not end the command without a word."""
    process, leave = os.getpid(), _leaving[0] if _leaving else os._exit

    def raises(status: int) -> NoReturn:
        if os.getpid() != process:  # one that the strategy has forked
            leave(status)
        raise SystemExit(f"os._exit({status})")

    _leaving.append(leave)
    os._exit = raises
    try:
        yield
    finally:
        _leaving.pop()
        if not _leaving:
            os._exit = leave


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
            with no_cycles(), _exit_raises():
                if task.part == ANSWERS and any(conversation.probes for conversation in shard.conversations):
                    from ..answers.replies import answer_shard  # with pandas and the grader

                    about = shard.conversations, shard.counter, shard.models, shard.answer_keys()
                    answer_shard(Path(work.folder), number, *about)
                elif task.part != ANSWERS:
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
        self._work, self.conversations = work, conversations
        self._own, *self._parts = parts_of(Path(work.folder), number, len(work.strategies))
        self._digests = [conversation.digest() for conversation in conversations]
        self.digest = joint_digest(self._digests)
        self._indexes: dict[int, ConversationIndex] = {}
        self._units = list(_units(conversations))
        self._bounds = {name: kind for name, kind in _BOUNDS.items() if work.probes and name not in work.strategies}

    def _index(self, at: int) -> ConversationIndex:
        """Return the index of a conversation, made when it is first needed."""
        if at not in self._indexes:
            self._indexes[at] = ConversationIndex(self.conversations[at], self.counter)
        return self._indexes[at]

    def write_own(self) -> int | None:
        """Write the conversations and ask the bounds; None if all is there. What is there of others is removed."""
        own = self._own
        if own.is_whole():
            same = pq.read_table(own.path("conversations"), columns=["digest"])["digest"].to_pylist() == self._digests
            asked = pq.read_table(own.path("probes"), columns=["strategy"])["strategy"].unique().to_pylist()
            if same and {*asked} <= self._bounds.keys():  # else a bound has been named as a strategy since
                return None
            for part in () if same else self._parts:
                part.remove()
        own.remove()

        def made(unit: slice) -> Tables:
            indexes = [self._index(at) for at in range(unit.start, unit.stop)]
            probes = {
                name: [(index.conversation.id, ask_bounds(index, bound(), self.models)) for index in indexes]
                for name, bound in self._bounds.items()
            }
            return {"probes": table_of_probes(probes), **recorded_tables(self._digests[unit], indexes)}

        own.write_recordings(self.conversations)
        own.write(self._tables(self._keys(OWN), made))
        return 0

    def write_part(self, at: int) -> int | None:
        """Replay the conversations through a strategy and measure it. Returns the steps, or None if all is there."""
        work, part, spec = self._work, self._parts[at], self._work.strategies[at]
        # What a stopped run finished is not made again, but where calls of its models failed.
        if part.is_whole() and not _has_failed_calls(part, work.models):
            return None
        part.remove()
        strategy, logs = parse(spec), dict[int, ContextLog]()
        budget = attempted(lambda: budget_of(strategy))

        def made(unit: slice) -> Tables:
            indexes, outcomes = [self._index(at) for at in range(unit.start, unit.stop)], list[Outcome]()
            for at, index in enumerate(indexes, unit.start):
                outcome = budget if isinstance(budget, str) else _replayed(index, strategy, self.models, work.probes)
                if not isinstance(outcome, str):
                    logs[at] = outcome[0]
                outcomes.append(outcome)
            return result_tables(spec, None if isinstance(budget, str) else budget, indexes, outcomes)

        keys = self._keys(at)
        # Where nothing is kept all are measured at once, which takes half of the time.
        tables = self._tables(keys, made) if any(map(any, keys)) else made(slice(0, len(self.conversations)))
        of = [key.offline if _has(tables, "called") else key.free for key in keys]
        results = tables["results"]
        place = results.schema.get_field_index("repeats")
        repeats = pa.array(self._repeats(results, strategy, logs, of), pa.bool_())
        tables["results"] = results.set_column(place, results.schema.field(place), repeats)
        part.write(tables)
        return int(tables["steps"].num_rows)

    def _repeats(
        self, results: pa.Table, strategy: Strategy, logs: Mapping[int, ContextLog], keys: Sequence[bytes]
    ) -> list[bool | None]:
        """Return whether a second replay of one conversation sends the same: of the shortest of 20 calls or more."""
        repeats: list[bool | None] = [None] * len(results)
        rows = enumerate(zip(results["status"].to_pylist(), results["steps"].to_pylist(), strict=True))
        if sizes := {at: steps for at, (status, steps) in rows if status == "ok"}:
            # A replay of 20 calls is long enough for a strategy to act, and short enough to be made twice.
            long = [at for at, size in sizes.items() if size >= 20]
            at = min(long, key=sizes.__getitem__) if long else max(sizes, key=sizes.__getitem__)
            of = next(key for unit, key in zip(self._units, keys, strict=True) if unit.stop > at)
            store, key = cache.results(), of and cache.key("repeats", of, self._digests[at])
            if (known := store.get(key)) is None:
                twice = [log for log in [logs.get(at)] if log]
                for _ in range(len(twice), 2):
                    outcome = _replayed(self._index(at), strategy, self.models, probes=False)
                    twice += [] if isinstance(outcome, str) else [outcome[0]]
                known = b"%d" % (len(twice) == 2 and twice[0].sends_as(twice[1]))
                store.put({key: known})
            repeats[at] = known == b"1"
        return repeats

    def _keys(self, part: int) -> list[Keys]:
        """Return the keys of a part's units in the cache."""
        work, of, is_offline, is_free = self._work, cache.key(*self._bounds), True, True
        if part in work.here:  # other processes cannot parse it, and nothing of it is kept
            of = b""
        elif part != OWN:
            strategy = parse(work.strategies[part])
            of = cache.of_strategy(strategy)
            is_offline = {work.models.summariser, *named([strategy], "")} <= {"", "offline"}
            is_free = is_offline or not packages(strategy)  # others' code may hide that a model did not reply
        if not (work.basis and of):
            return [Keys()] * len(self._units)
        keys = list[Keys]()
        for unit in self._units:
            # What the tables say of a conversation, and its digest does not.
            names = (f"{said.id}\n{said.source}\n{said.meta}" for said in self.conversations[unit])
            key = cache.key(work.basis, of, *self._digests[unit], *names)
            keys.append(Keys(key if is_free else b"", cache.key("offline", key) if is_offline else b""))
        return keys

    def _tables(self, keys: Sequence[Keys], make: Callable[[slice], Tables]) -> Tables:
        """Return the tables of a part: of each unit those in the cache, or else those that are made now."""
        store, found = cache.results(), list[Tables]()
        for unit, key in zip(self._units, keys, strict=True):
            if (data := store.get(key.free) or store.get(key.offline)) is not None:
                found.append(unpacked(data))
                continue
            found.append(tables := make(unit))
            # A strategy that failed, or whose model did, may not do so the next time.
            statuses = tables.get("results", _NONE)["status"].to_pylist()
            if any(key) and not (_has(tables, "failed") or "failed" in statuses):
                store.put({key.offline if _has(tables, "called") else key.free: packed(tables)})
        return joined(found)

    def answer_keys(self) -> dict[tuple[str, str], bytes]:
        """Map each conversation and strategy, or bound, to the key of what was sent, where models had no say in it."""
        parts = [(name, self._keys(OWN)) for name in self._bounds]
        parts += [(spec, self._keys(at)) for at, spec in enumerate(self._work.strategies)]
        return {
            (said.id, name): key.offline
            for name, keys in parts
            for unit, key in zip(self._units, keys, strict=True)
            for said in self.conversations[unit]
            if key.offline
        }


_NONE = SCHEMAS["results"].empty_table()
_BOUNDS: Mapping[str, Callable[[], Strategy]] = {FLOOR: LastTurn, CEILING: EvidenceOnly}


class Keys(NamedTuple):
    """The keys of the tables of a unit in the cache; empty where they are not kept."""

    free: bytes = b""  # of tables that no model had a say in
    offline: bytes = b""  # of those that the offline model had one in, and none other


UNIT_MESSAGES = 256
"""Messages from which on a unit is full: consecutive conversations whose tables are found again together."""


def _units(conversations: Sequence[Conversation]) -> Iterator[slice]:
    start = messages = 0
    for stop, conversation in enumerate(conversations, 1):
        messages += len(conversation.messages)
        if messages >= UNIT_MESSAGES or stop == len(conversations):
            yield slice(start, stop)
            start, messages = stop, 0


_WRITER = PartWriter(kept=2)


def do_bundle(tasks: list[PartTask]) -> list[Done]:
    """Do tasks in a worker process, which has the shards of its last tasks in memory."""
    return [_WRITER.do(task) for task in tasks]


def do_packed(tasks: bytes) -> list[Done]:
    """Do tasks that came as MessagePack."""
    return do_bundle(msgspec.msgpack.decode(tasks, type=list[PartTask]))


@contextmanager
def no_cycles() -> Iterator[None]:
    """Turn the garbage collector off for a while: walking logs, which have no cycles, took a tenth of a replay."""
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
    tables = {name: pq.read_table(path, schema=SCHEMAS[name]) for name, path in paths.items() if path.exists()}
    if not _has(tables, "failed"):  # then it needs no tallies
        return False
    from ..answers.tally import EVENTS_OF_PROBES, strategy_tallies

    events, probes = (tables.get(name, SCHEMAS[name].empty_table()) for name in paths)
    probes = probes.select(EVENTS_OF_PROBES)
    tallies = strategy_tallies(events.to_pandas(), probes.to_pandas(), models.summariser, models.embedder)
    return any(tally.failed for tally in tallies)


def _has(tables: Tables, tag: str) -> bool:
    """Return whether a strategy reported an event of this tag, which stands first in its JSON."""
    texts = [tables["events"]["event"]] if "events" in tables else []
    texts += [pc.list_flatten(tables["probes"]["events"])]
    return any(pc.any(pc.starts_with(column, f'{{"event":"{tag}"')).as_py() for column in texts)


# Both live as long as the process, so that the shards of a worker share counts and open connections.
_counter, _models = functools.cache(TokenCounter), functools.cache(Models)


Outcome = tuple[ContextLog, list[ProbeRow]] | str
"""The log and the probes of a strategy in one conversation, or why it failed there."""


def _replayed(index: ConversationIndex, strategy: Strategy, models: Models, probes: bool) -> Outcome:
    """Replay one conversation through one strategy. If the strategy raises, return why: it loses this result alone."""

    def outcome() -> tuple[ContextLog, list[ProbeRow]]:
        log = ContextLog(index.conversation.messages)
        if probes and index.conversation.probes:
            return log, ask_probes(index, strategy, models, log)
        for step in replay(index.conversation, strategy, RecordedContext(index, models)):
            log.add(step)
        return log, []

    return attempted(outcome)


NO_CALL, NO_USAGE = Call(), Usage()
_BELOW_FOCUS = ("working", "archive", "rag")
_OF_CALLS = ("input_tokens", "output_tokens", "cost", "about", "shown")
_OF_EVENTS = ("own_tokens", "lookups", "lookup_hits", "archive_content", "archive_stored")


def recorded_tables(digests: Sequence[str], indexes: Sequence[ConversationIndex]) -> Tables:
    """Return the tables `messages` and `conversations`."""
    conversations = [index.conversation for index in indexes]
    sizes = [len(conversation.messages) for conversation in conversations]
    messages = [message for conversation in conversations for message in conversation.messages]
    running = [index.ledger.running(size) for index, size in zip(indexes, sizes, strict=True)]
    calls = [call if (call := message.call) is not None and not call.copied else NO_CALL for message in messages]
    usage = [call.usage or NO_USAGE for call in calls]
    said = table_of(
        "messages",
        {
            "conversation": [c.id for c, size in zip(conversations, sizes, strict=True) for _ in range(size)],
            "at": [at for size in sizes for at in range(size)],
            **{name: [getattr(message, name) for message in messages] for name in ("id", "role", "time")},
            "tokens": [after - before for sums in running for before, after in pairwise(sums)],
            "model": [call.model or None for call in calls],
            **{
                f"usage_{name}": [getattr(reported, name) for reported in usage]
                for name in ("input", "output", "cache_read", "cache_write", "cost")
            },
            "tool": [tool for conversation in conversations for tool in _tools_of(conversation)],
            "uses": [used for index in indexes for used in used_results(index.conversation, index.demands)],
            "compacted": [compacted for conversation in conversations for compacted in _compacted(conversation)],
        },
    )
    of = table_of(
        "conversations",
        {
            "conversation": [c.id for c in conversations],
            "digest": digests,
            **{name: [getattr(c, name) for c in conversations] for name in ("source", "licence", "language")},
            "messages": sizes,
            "calls": [sum(1 for _ in c.calls()) for c in conversations],
            "probes": [len(c.probes) for c in conversations],
            "tokens": [sums[-1] for sums in running],
            "tools_tokens": [index.tools(c.tools) for c, index in zip(conversations, indexes, strict=True)],
            "meta": [msgspec.json.encode(c.meta).decode() for c in conversations],
        },
    )
    return {"messages": said, "conversations": of}


def _tools_of(conversation: Conversation) -> Iterator[str | None]:
    """Yield for each message the name of the tool whose result it is; None for all others."""
    named = dict[str | None, str | None]()
    for message in conversation.messages:
        yield named.get(message.answers) if message.answers is not None else None
        named |= {call.id: call.name for call in message.calls}


def _compacted(conversation: Conversation) -> Iterator[bool]:
    """Return for each message whether the recorded agent had compacted its context before it."""
    after = {compaction.after for compaction in conversation.compactions}
    ends = [message.id in after for message in conversation.messages]
    return accumulate([False, *ends][: len(ends)], or_)


def result_tables(
    spec: str, budget: int | None, indexes: Sequence[ConversationIndex], outcomes: Sequence[Outcome]
) -> Tables:
    """Measure one strategy on conversations, and return the tables of that."""
    logs = [outcome if isinstance(outcome, str) else outcome[0] for outcome in outcomes]
    pairs = zip(indexes, outcomes, strict=True)
    # Conversations that failed have no probes.
    probed = [(index.conversation.id, outcome[1]) for index, outcome in pairs if not isinstance(outcome, str)]
    tables = {"probes": table_of_probes({spec: probed})}
    replayed = [(index, log) for index, log in zip(indexes, logs, strict=True) if isinstance(log, ContextLog)]
    steps = [len(log.runs.at) for _, log in replayed]
    measured = measure([cell_of(index, log, budget) for index, log in replayed])
    names = {
        "conversation": [index.conversation.id for index, log in replayed for _ in log.runs.at],
        "strategy": [spec] * sum(steps),
    }
    # Times have a file of their own: all others are the same bytes for the same input (decision 3).
    tables["timings"] = table_of(
        "timings",
        {
            **names,
            "step": measured["step"],
            "latency_ns": [time for _, log in replayed for time in log.latency_ns],
            "model_wait_ns": [time for _, log in replayed for time in log.model_wait_ns],
        },
    )
    for table, rows in (("contexts", _written), ("events", _events), ("survival", _survived)):
        found = [(index.conversation.id, row) for index, log in replayed for row in rows(index, log)]
        if found:  # only some strategies have any
            columns = {name: [row[name] for _, row in found] for name in found[0][1]}
            named = {"conversation": [name for name, _ in found], "strategy": [spec] * len(found)}
            tables[table] = table_of(table, {**named, **columns})
    of_sent = [_of_sent(index, log) for index, log in replayed]
    demands = [(index.conversation.id, index.demands) for index, _ in replayed]
    tables["grounding"] = table_of(
        "grounding",
        {
            "conversation": [name for name, demand in demands for _ in demand.step],
            "strategy": [spec for _, demand in demands for _ in demand.step],
            **{
                name: [item for _, demand in demands for item in getattr(demand, name)]
                for name in ("step", "of", "kind", "values")
            },
            "kept": [count for counts, _ in of_sent for count in counts.tolist()],
        },
    )
    by_result = [
        {**_of_events(log), **_of_written(index, log), **columns}
        for (index, log), (_, columns) in zip(replayed, of_sent, strict=True)
    ]
    more = by_result[0].keys() if by_result else ()
    tables["steps"] = table_of(
        "steps",
        {
            **dict.fromkeys(SCHEMAS["steps"].names, ()),
            **names,
            **measured,
            **{name: np.concatenate([columns[name] for columns in by_result]) for name in more},
            "marks": [marks for _, log in replayed for marks in log.marks],
            "tools_added": [tools for index, log in replayed for tools in _tools_added(index, log)],
        },
    )
    tables["results"] = table_of(
        "results",
        {
            "conversation": [index.conversation.id for index in indexes],
            "strategy": [spec] * len(indexes),
            "status": ["ok" if isinstance(log, ContextLog) else "failed" for log in logs],
            "detail": ["" if isinstance(log, ContextLog) else log for log in logs],
            "steps": [len(log.runs.at) if isinstance(log, ContextLog) else 0 for log in logs],
            "budget": [budget] * len(logs),
            "repeats": [None] * len(logs),  # known of one conversation of a shard
        },
    )
    return tables


def _tools_added(index: ConversationIndex, log: ContextLog) -> Iterator[list[str]]:
    """Yield for each step the tools that are not the recording's, as JSON."""
    recorded = before = index.conversation.tools
    added: list[str] = []
    for tools in log.tools:
        if tools is not before:
            before = tools
            added = [msgspec.json.encode(tool).decode() for tool in tools if tool not in recorded]
        yield added


def _of_events(log: ContextLog) -> dict[str, NDArray[Any]]:
    """Return the columns of `steps` that sum what a strategy reported; look-ups count from Working's first eviction."""
    columns = {name: np.zeros(len(log.runs.at), np.int64) for name in _OF_EVENTS}
    cost = np.zeros(len(log.runs.at))
    evictions = (
        step
        for step, event in log.events
        if isinstance(event, Moved) and event.source == "working" and event.to in _BELOW_FOCUS  # not what is forgotten
    )
    first_eviction, archive = min(evictions, default=math.inf), Compressed(0, 0)
    for step, event in log.events:
        match event:
            case Called():
                columns["own_tokens"][step] += event.input_tokens + event.output_tokens
                cost[step] += math.nan if event.cost is None else event.cost
            case Recalled() if event.kind in _BELOW_FOCUS and step >= first_eviction:
                columns["lookups"][step] += len(event.sources)
                columns["lookup_hits"][step] += len(event.sources) * (event.kind == "working")
            case Compressed():
                columns["archive_content"][step] += event.content - archive.content
                columns["archive_stored"][step] += event.stored - archive.stored
                archive = event
    return {**columns, "own_cost": cost}


def _of_sent(index: ConversationIndex, log: ContextLog) -> tuple[Ints, dict[str, NDArray[Any]]]:
    """Return how many demands of each row are retained, and the columns of `steps` on what is in the contexts.

    Where strategies send the same messages, which most do of a short conversation, it is measured once.
    """
    runs = log.runs
    key = None if log.written else sha256(b"".join(map(bytes, (runs.at, runs.size, runs.start, runs.stop)))).digest()
    if key in index.measured:
        return index.measured[key]
    by_demand, columns = _in_contexts(index, log)
    demands, messages, steps = index.demands, index.conversation.messages, len(runs.at)
    columns |= {
        "values_given": counted(index.given, np.array(runs.at, np.int64)),
        "asks": np.array([bool(messages[at].calls) for at in runs.at], bool),
        "constraints": index.constraints.by_step,
        "demands": np.bincount(demands.step, demands.values, steps),
        "demands_kept": np.bincount(demands.step, by_demand, steps),
    }
    if key is not None:
        index.measured[key] = by_demand, columns
    return by_demand, columns


def _in_contexts(index: ConversationIndex, log: ContextLog) -> tuple[Ints, dict[str, NDArray[Any]]]:
    """Return how many demands of each row are retained, and what else is by step.

    Contexts with all that was said before, as most of short conversations, retain all: only rules are looked for there,
    which the message that states them may have in other words.
    """
    runs, steps, size = log.runs, len(log.runs.at), len(index.conversation.messages)
    at, lines, demands = np.array(runs.at, np.int64), lines_of(log.written), index.demands
    is_whole = not log.written and runs.stop == runs.at and not any(runs.start)
    sent = stretches(runs, size, lines) if index.constraints.rules or not is_whole else None
    none = np.zeros(steps, np.int64)
    rules = none if sent is None else retained_constraints(index.constraints, sent, lines)
    if sent is None or is_whole:
        columns = {"values_kept": counted(index.given, at), "reasks": none > 0, "refetch_tokens": none}
        return demands.values, {**columns, "constraints_kept": rules}
    is_kept = retained(demands, sent, lines)
    lost = demands.row[~is_kept]
    by_call = np.array([of == "call" for of in demands.of], bool)[lost]
    step = np.searchsorted(at, np.array([each.at for each in index.repeated], np.int64))
    source = np.array([each.source for each in index.repeated], np.int64)
    repeats = step[sent.until(source, step) == step]
    return by_row(demands, is_kept), {
        "values_kept": visible(index.given, at, size, sent, lines),
        "reasks": np.bincount(np.append(demands.step[lost[by_call]], repeats), minlength=steps) > 0,
        "constraints_kept": rules,
        "refetch_tokens": refetched(demands, is_kept, np.diff(index.ledger.running(size)), steps),
    }


def _of_written(index: ConversationIndex, log: ContextLog) -> dict[str, NDArray[Any]]:
    """Return the columns of `steps` on what a strategy wrote, and on what that stands for.

    A summary stands for the messages that it covers and that are not sent; a written message with the id of a recorded
    one for that one. The newest message is there as itself, under its id, or in a summary that is a user's message.
    """
    runs, steps, ledger, messages = log.runs, len(log.runs.at), index.ledger, index.conversation.messages
    at, start, stop = (np.array(column, np.int64) for column in (runs.at, runs.start, runs.stop))
    of, size = np.repeat(np.arange(steps), runs.size), len(messages)

    def count(flags: NDArray[Any]) -> Ints:
        """Return the sum over the runs of each step."""
        return np.bincount(of, flags, steps).astype(np.int64)

    tools = np.array([index.tools(tools) for tools in log.tools], np.int64) - index.tools(index.conversation.tools)
    newest, added = count((start < at[of]) & (at[of] <= stop)) > 0, np.maximum(tools, 0)
    replaced = standing_in = np.zeros(steps, np.int64)
    if log.written:
        places = {message.id: place for place, message in enumerate(messages, 1)}
        summaries = deque((step, event) for step, event in log.events if isinstance(event, Summarised))
        writers = tuple({f"{event.by}:" for _, event in summaries})
        wrote = np.maximum(start - size, -1)

        def of_runs(values: Iterable[int]) -> Ints:
            """Return for each run the value of its written message, 0 for a run of the recording."""
            return np.array([*values, 0], np.int64)[wrote]

        # Where the recorded message is that a run stands for, from 1; 0 = nowhere.
        place = of_runs(places.get(message.id, 0) for message in log.written)
        tokens = of_runs(map(ledger.tokens, log.written))
        is_summary = (of_runs(message.id.startswith(writers) for message in log.written) > 0) & (place == 0)
        is_asked = is_summary & (of_runs(message.role == "user" for message in log.written) > 0)
        added += count(tokens)
        standing_in = count(tokens * (is_summary | (place > 0)))
        recorded, covered = np.diff(ledger.running(size)), np.zeros(size, bool)
        newest |= count((place > 0) & (place == at[of])) > 0
        sends_summary, asks, replaced = count(is_summary) > 0, count(is_asked) > 0, replaced.copy()
        for step, (runs_from, runs_to) in enumerate(pairwise(np.searchsorted(of, np.arange(steps + 1)))):
            while summaries and summaries[0][0] == step:
                # An id that is none of the recording's is that of a message which another stage of the chain wrote.
                covered[[places[name] - 1 for name in summaries.popleft()[1].replaced if name in places]] = True
            # A window after a summary may cut the summary off as well: then nothing stands in for what it covers.
            is_replaced = covered.copy() if sends_summary[step] else np.zeros(size, bool)
            here = slice(runs_from, runs_to)
            for run_start, run_stop in zip(start[here].tolist(), stop[here].tolist(), strict=True):
                is_replaced[run_start:run_stop] = False
            is_replaced[place[here][place[here] > 0] - 1] = True
            replaced[step] = recorded[is_replaced].sum()
            newest[step] |= asks[step] and covered[at[step] - 1]
    return {"newest": newest, "tokens_added": added, "tokens_replaced": replaced, "tokens_standing_in": standing_in}


def cell_of(index: ConversationIndex, log: ContextLog, budget: int | None) -> MeasuredResult:
    """Return a replayed conversation in the form that `metrics.measure` takes."""
    return MeasuredResult(
        recording=index.conversation.messages,
        written=log.written,
        ledger=index.ledger,
        structure=index.structure,
        runs=log.runs,
        tools=[index.tools(tools) for tools in log.tools],
        tools_full=index.tools(index.conversation.tools),
        budget=budget,
    )


def _written(index: ConversationIndex, log: ContextLog) -> Iterator[dict[str, Any]]:
    """Yield the messages that the strategy wrote."""
    for number, message in enumerate(log.written):
        tokens = index.ledger.tokens(message)
        yield {"number": number, "tokens": tokens, "message": msgspec.json.encode(message).decode()}


def _events(_: ConversationIndex, log: ContextLog) -> Iterator[dict[str, Any]]:
    """Yield the actions that the strategy reported."""
    for step, event in log.events:
        columns = dict.fromkeys(_OF_CALLS)
        if isinstance(event, Called):
            known = _OF_CALLS if event.role == "summariser" else _OF_CALLS[:3]
            columns |= {name: getattr(event, name) for name in known}
        kind = str(event.__struct_config__.tag)
        yield {"step": step, "kind": kind, **columns, "event": msgspec.json.encode(event).decode()}


def _survived(index: ConversationIndex, log: ContextLog) -> Iterator[dict[str, Any]]:
    """Yield how long facts outlived being summarised, round by round."""
    in_force: dict[tuple[str, int], str] = {}
    rounds = list[tuple[Sequence[str], str]]()
    for _, event in log.events:
        if isinstance(event, Summarised):
            # A summary of summaries replaces no messages, and empties the level below.
            below = {(event.by, level) for level in range(1, event.level)}
            in_force = {place: text for place, text in in_force.items() if place not in below}
            in_force[event.by, event.level] = event.summary
            rounds.append((event.replaced if event.level == 1 else (), "\n".join(in_force.values())))
    if rounds:
        facts = index.followed({name for names, _ in rounds for name in names})
        replaced = [[fact for name in names for fact in facts.of.get(name, ())] for names, _ in rounds]
        numbered = [Round(new, summary) for new, (_, summary) in zip(replaced, rounds, strict=True)]
        yield from (row._asdict() for row in survival(numbered, facts))
