"""The work on a shard, some consecutive conversations, in tasks: each writes one part of the run folder.

The shard's own part comes first: its conversations, and the bounds of its probes. Then one part for each strategy, in
any order, by any worker. The answers to its probes come last, since they read all other parts.
"""

from __future__ import annotations

import gc
import math
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from itertools import accumulate, pairwise
from operator import or_
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from ctxbench.metrics.constraints import retained_constraints
from ctxbench.metrics.grounding import by_row, refetched, retained
from ctxbench.metrics.measure import Ints, MeasuredResult, measure
from ctxbench.metrics.survival import Round, survival
from ctxbench.metrics.tokens import TokenCounter
from ctxbench.scenarios.errors import RunError
from ctxbench.scenarios.model import Call, Conversation, Usage
from ctxbench.strategies.base import Strategy, budget_of
from ctxbench.strategies.bounds import EvidenceOnly, LastTurn
from ctxbench.strategies.chain import parse
from ctxbench.strategies.events import Called, Compressed, Moved, Recalled, Summarised

from ..answers.replies import answer_shard
from ..answers.tally import EVENTS_OF_PROBES, strategy_tallies
from ..folder.files import joint_digest
from ..folder.remote import remote_folder
from ..folder.schema import SCHEMAS
from ..folder.store import ResultPart, parts_of, read_conversations, unwritable
from ..models import Models, Settings
from ..probes import CEILING, FLOOR, ProbeRow, ask_bounds, ask_probes, write_probes
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
    part: int  # number of the strategy, OWN or ANSWERS
    conversations: tuple[Conversation, ...] = ()
    """The shard's, with its own part. Whoever writes another one reads them from the folder, or has them still."""


class Done(msgspec.Struct, frozen=True):
    """Report of a task whose files are written."""

    shard: int
    part: int
    digest: str  # of the shard's conversations
    steps: int = 0  # steps replayed now; none if the part was finished before


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
        """Write the conversations and ask the bounds; None if all is there. Raises RunError for others."""
        work, own = self._work, self._own
        if own.is_whole():
            if pq.read_table(own.path("conversations"), columns=["digest"])["digest"].to_pylist() != self._digests:
                raise RunError(
                    f"{work.folder}: this run is of other recordings or questions, as {own.path('conversations')} "
                    "says: run with --overwrite, or name another --out"
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


NO_CALL, NO_USAGE = Call(), Usage()
_BELOW_FOCUS = ("working", "archive", "rag")
_OF_CALLS = ("input_tokens", "output_tokens", "cost", "about", "shown")
_OF_EVENTS = ("own_tokens", "lookups", "lookup_hits", "archive_content", "archive_stored")


def write_recordings(
    part: ResultPart, digests: list[str], conversations: Sequence[Conversation], indexes: Sequence[ConversationIndex]
) -> None:
    """Write a shard's conversations: as they are, and as the tables `messages` and `conversations`."""
    part.write_recordings(conversations)
    sizes = [len(conversation.messages) for conversation in conversations]
    messages = [message for conversation in conversations for message in conversation.messages]
    running = [index.ledger.running(size) for index, size in zip(indexes, sizes, strict=True)]
    calls = [call if (call := message.call) is not None and not call.copied else NO_CALL for message in messages]
    usage = [call.usage or NO_USAGE for call in calls]
    part.write(
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
            "compacted": [compacted for conversation in conversations for compacted in _compacted(conversation)],
        },
    )
    part.write(
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


def _compacted(conversation: Conversation) -> Iterator[bool]:
    """Return for each message whether the recorded agent had compacted its context before it."""
    after = {compaction.after for compaction in conversation.compactions}
    ends = [message.id in after for message in conversation.messages]
    return accumulate([False, *ends][: len(ends)], or_)


def write_cells(
    part: ResultPart,
    spec: str,
    budget: int | None,
    indexes: Sequence[ConversationIndex],
    logs: Sequence[ContextLog | str],
    repeats: Sequence[bool | None],
) -> int:
    """Measure one strategy on every conversation of a shard and write the part's tables. Returns the number of steps.

    A log that is a string is the reason why that conversation failed. `repeats`: whether a second replay sent the same.
    """
    replayed = [(index, log) for index, log in zip(indexes, logs, strict=True) if isinstance(log, ContextLog)]
    steps = [len(log.runs.at) for _, log in replayed]
    measured = measure([cell_of(index, log, budget) for index, log in replayed])
    names = {
        "conversation": [index.conversation.id for index, log in replayed for _ in log.runs.at],
        "strategy": [spec] * sum(steps),
    }
    # Times have a file of their own: all others are the same bytes for the same input (decision 3).
    part.write(
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
            part.write(table, {"conversation": [name for name, _ in found], "strategy": [spec] * len(found), **columns})
    kept = [retained(index.demands, log.runs, log.written) for index, log in replayed]
    kept_by_row = [by_row(index.demands, is_kept) for (index, _), is_kept in zip(replayed, kept, strict=True)]
    demands = [(index.conversation.id, index.demands) for index, _ in replayed]
    part.write(
        "grounding",
        {
            "conversation": [name for name, demand in demands for _ in demand.step],
            "strategy": [spec for _, demand in demands for _ in demand.step],
            **{
                name: [item for _, demand in demands for item in getattr(demand, name)]
                for name in ("step", "of", "kind", "values")
            },
            "kept": [count for counts in kept_by_row for count in counts.tolist()],
        },
    )
    by_result = [
        {
            **_of_events(log),
            **_of_written(index, log),
            "constraints": index.constraints.by_step,
            "constraints_kept": retained_constraints(index.constraints, log.runs, log.written),
            "demands": np.bincount(index.demands.step, index.demands.values, len(log.runs.at)),
            "demands_kept": np.bincount(index.demands.step, counts, len(log.runs.at)),
            "refetch_tokens": refetched(
                index.demands, is_kept, np.diff(index.ledger.running(index.demands.size)), len(log.runs.at)
            ),
        }
        for (index, log), is_kept, counts in zip(replayed, kept, kept_by_row, strict=True)
    ]
    more = by_result[0].keys() if by_result else ()
    part.write(
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
    part.write(
        "results",
        {
            "conversation": [index.conversation.id for index in indexes],
            "strategy": [spec] * len(indexes),
            "status": ["ok" if isinstance(log, ContextLog) else "failed" for log in logs],
            "detail": ["" if isinstance(log, ContextLog) else log for log in logs],
            "steps": [len(log.runs.at) if isinstance(log, ContextLog) else 0 for log in logs],
            "budget": [budget] * len(logs),
            "repeats": repeats,
        },
    )
    return sum(steps)


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
    """Return the columns of the table `steps` that add up what the strategy reported.

    Look-ups in the tiers count from the call at which Working first evicted something: a cache that has not had to
    choose hits whatever its policy is.
    """
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


def _of_written(index: ConversationIndex, log: ContextLog) -> dict[str, NDArray[Any]]:
    """Return the columns of the table `steps` on what a strategy wrote, and on what that stands for.

    A summary stands for the messages that it covers and that are not sent. A written message that has the id of a
    recorded one (a placeholder, a shortened message) stands for that one. The newest message is there as itself, under
    its id, or in a summary that is a user's message: agents compact in the middle of a turn, and the request is
    answered.
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
    rounds = []
    for _, event in log.events:
        if isinstance(event, Summarised):
            # A summary of summaries replaces no messages, and empties the level below.
            below = {(event.by, level) for level in range(1, event.level)}
            in_force = {place: text for place, text in in_force.items() if place not in below}
            in_force[event.by, event.level] = event.summary
            replaced = [fact for name in event.replaced for fact in index.facts_in(name)] if event.level == 1 else []
            rounds.append(Round(replaced, "\n".join(in_force.values())))
    for row in survival(rounds):
        yield row._asdict()
