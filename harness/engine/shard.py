"""One unit of work: a shard of conversations through every strategy, written to the run folder."""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from itertools import pairwise
from pathlib import Path

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ...metrics.constraints import retained_constraints
from ...metrics.grounding import by_row, refetched, retained
from ...metrics.measure import Ints, MeasuredResult, measure
from ...metrics.survival import Round, survival
from ...metrics.tokens import TokenCounter
from ...scenarios.errors import RunError, Stopped
from ...scenarios.model import Call, Conversation, Usage
from ...strategies.base import Strategy, budget_of
from ...strategies.bounds import EvidenceOnly, LastTurn
from ...strategies.chain import parse
from ...strategies.events import Called, Summarised
from ..answers.answer import answer_usually
from ..answers.tally import EVENTS_OF_PROBES, strategy_tallies
from ..folder.files import all_damage, joint_digest
from ..folder.schema import SCHEMAS
from ..folder.store import Constant, ResultPart, parts_of
from ..models import Models, Settings
from ..probes.ask import CEILING, FLOOR
from ..probes.probe_run import ProbeResult, bounded, interviewed, write_probes
from ..replay import ContextLog, ConversationIndex, RecordedContext, failure_reason, replay

ReplayOutcome = tuple[ContextLog, list[ProbeResult]]
Asked = dict[str, list[tuple[str, list[ProbeResult]]]]
"""By strategy the conversations with their probes."""


class Shard(msgspec.Struct, frozen=True):
    """Some consecutive conversations, and the strategies to put them through."""

    number: int
    conversations: list[Conversation]
    strategies: list[str]
    folder: str
    run: str
    """Digest of the run's plan and versions, for the receipts."""
    encoding: str
    models: Settings = Settings()
    probes: bool = True
    """Whether probes are asked."""
    answers: bool = False
    """Whether they are answered, by `offline`, and the answers graded, by `rules`."""
    ask_again: bool = True
    """Whether a part that is finished is made again where calls of its models failed."""


class Done(msgspec.Struct, frozen=True):
    """Receipt of a shard whose files are written."""

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
    digest = joint_digest(digests)
    counter, models, steps = _counter(shard.encoding), _models(shard.models), 0
    try:
        own, *cells = parts_of(folder, shard.number, len(shard.strategies))
        # The parts of a shard that a stopped run finished are not made again.
        whole = _is_finished(own, shard.run, digest)
        todo = [
            (spec, part)
            for spec, part in zip(shard.strategies, cells, strict=True)
            if not _is_finished(part, shard.run, digest) or (shard.ask_again and _has_failed_calls(part, shard.models))
        ]
        indexes = [ConversationIndex(conversation, counter) for conversation in conversations]
        with no_cycles():
            if not whole:
                own.begin()
                write_probes(own, _bounds(indexes, shard.strategies, models, shard.probes))
                write_recordings(own, digests, conversations, indexes)
                own.finish(shard.run, digest)
            for spec, part in todo:
                part.begin()
                strategy = parse(spec)
                budget, wrong = _budget(strategy)
                outcomes = [wrong or _replayed(index, strategy, models, shard.probes) for index in indexes]
                write_probes(part, {spec: _probed(conversations, outcomes)})
                logs = [outcome if isinstance(outcome, str) else outcome[0] for outcome in outcomes]
                repeats = _repeats(indexes, logs, strategy, models, shard.probes)
                steps += write_cells(part, spec, budget, indexes, logs, repeats)
                part.finish(shard.run, digest)
        if shard.answers:
            answer_usually(folder, shard.number, counter, models)
    except OSError as error:
        raise RunError(f"{folder}: cannot be written: {error.strerror or error}") from None
    return Done(shard.number, len(conversations), steps, digest)


@contextmanager
def no_cycles() -> Iterator[None]:
    """Turn the garbage collector off for a while: a log has no cycles, and walking it took a tenth of the time."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def _is_finished(part: ResultPart, run: str, digest: str) -> bool:
    """Return whether a part is whole, as it was written, and of this run. Raises RunError for other conversations."""
    receipts, wrong = part.receipts(run)
    if any(receipt.shard != digest for receipt in receipts):
        raise RunError(
            f"{part.folder}: the recordings are not what they were when this run began (shard {part.name}): "
            "run with --overwrite, or name another --out"
        )
    return not wrong and part.is_whole() and not all_damage(part.folder, receipts)


def _has_failed_calls(part: ResultPart, models: Settings) -> bool:
    """Return whether a call of the strategy's models had no reply. A reply that is of no use is one."""
    events, probes = _table(part, "events"), _table(part, "probes").select(EVENTS_OF_PROBES)
    texts = (events["event"], pc.list_flatten(probes["events"]))
    if not any(pc.any(pc.starts_with(column, '{"event":"failed"')).as_py() for column in texts):
        return False
    tallies = strategy_tallies(events.to_pandas(), probes.to_pandas(), models.summariser, models.embedder)
    return any(tally.failed for tally in tallies)


def _table(part: ResultPart, name: str) -> pa.Table:
    path, schema = part.path(name), SCHEMAS[name]
    return pq.read_table(path, schema=schema) if path.exists() else schema.empty_table()


# Both live as long as the process, so that the shards of a worker share counts and open connections.
@cache
def _counter(encoding: str) -> TokenCounter:
    return TokenCounter(encoding)


@cache
def _models(settings: Settings) -> Models:
    return Models(settings)


def _replayed(index: ConversationIndex, strategy: Strategy, models: Models, probes: bool) -> ReplayOutcome | str:
    """Replay one conversation through one strategy. If the strategy raises, return why: it loses this result alone."""
    log = ContextLog(index.conversation.messages)
    try:
        if probes and index.conversation.probes:
            return log, interviewed(index, strategy, models, log)
        for step in replay(index.conversation, strategy, RecordedContext(index, models)):
            log.add(step)
    except Stopped:
        raise
    except (Exception, SystemExit) as error:  # a plug-in may raise, or exit, as it likes
        return failure_reason(error)
    return log, []


# A replay of as many calls is long enough for a strategy to act, and short enough to be made twice.
_CALLS_REPLAYED_TWICE = 20


def _repeats(
    indexes: Sequence[ConversationIndex],
    logs: Sequence[ContextLog | str],
    strategy: Strategy,
    models: Models,
    probes: bool,
) -> list[bool | None]:
    """Replay one conversation a second time, and return for each whether it sent the same; None for the others.

    It is the shortest one of at least 20 calls, or else the longest. Where every reply is to be recorded anew there is
    none: it would be paid for twice.
    """
    sizes = {at: len(log.runs.at) for at, log in enumerate(logs) if isinstance(log, ContextLog)}
    repeats: list[bool | None] = [None] * len(logs)
    if sizes and models.settings.mode != "record":
        long = [at for at, size in sizes.items() if size >= _CALLS_REPLAYED_TWICE]
        at = min(long, key=lambda at: sizes[at]) if long else max(sizes, key=lambda at: sizes[at])
        first, again = logs[at], _replayed(indexes[at], strategy, models, probes)
        repeats[at] = isinstance(first, ContextLog) and not isinstance(again, str) and first.sends_as(again[0])
    return repeats


def _probed(
    conversations: Sequence[Conversation], outcomes: Sequence[ReplayOutcome | str]
) -> list[tuple[str, list[ProbeResult]]]:
    """Return the probes of the conversations that did not fail."""
    pairs = zip(conversations, outcomes, strict=True)
    return [(conversation.id, outcome[1]) for conversation, outcome in pairs if not isinstance(outcome, str)]


def _bounds(indexes: Sequence[ConversationIndex], strategies: Sequence[str], models: Models, probes: bool) -> Asked:
    """Ask the bounds that are no strategies of the run the probes of each conversation."""
    if not probes:
        return {}
    bounds: dict[str, Strategy] = {FLOOR: LastTurn(), CEILING: EvidenceOnly()}
    return {
        name: [(index.conversation.id, bounded(index, bound, models)) for index in indexes]
        for name, bound in bounds.items()
        if name not in strategies
    }


def _budget(strategy: Strategy) -> tuple[int | None, str]:
    """Return the budget that the strategy promises; if it raises, None and why: it then loses all its results."""
    try:
        return budget_of(strategy), ""
    except Stopped:
        raise
    except (Exception, SystemExit) as error:
        return None, failure_reason(error)


NO_CALL, NO_USAGE = Call(), Usage()


def write_recordings(
    part: ResultPart, digests: list[str], conversations: list[Conversation], indexes: Sequence[ConversationIndex]
) -> None:
    """Write a shard's conversations: as they are, and as the tables `messages` and `conversations`."""
    part.write_recordings(conversations)
    sizes = [len(conversation.messages) for conversation in conversations]
    messages = [message for conversation in conversations for message in conversation.messages]
    running = [index.ledger.running(size) for index, size in zip(indexes, sizes, strict=True)]
    calls = [message.call or NO_CALL for message in messages]
    usage = [call.usage or NO_USAGE for call in calls]
    part.write(
        "messages",
        {
            "conversation": [c.id for c, size in zip(conversations, sizes, strict=True) for _ in range(size)],
            "at": [at for size in sizes for at in range(size)],
            "id": [message.id for message in messages],
            "role": [message.role for message in messages],
            "tokens": [after - before for sums in running for before, after in pairwise(sums)],
            "time": [message.time for message in messages],
            "model": [call.model or None for call in calls],
            "usage_input": [reported.input for reported in usage],
            "usage_output": [reported.output for reported in usage],
            "usage_cache_read": [reported.cache_read for reported in usage],
            "usage_cache_write": [reported.cache_write for reported in usage],
            "usage_cost": [reported.cost for reported in usage],
            "compacted": [compacted for conversation in conversations for compacted in _compacted(conversation)],
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
            "tokens": [sums[-1] for sums in running],
            "tools_tokens": [index.tools(c.tools) for c, index in zip(conversations, indexes, strict=True)],
            "meta": [msgspec.json.encode(c.meta).decode() for c in conversations],
        },
    )


def _compacted(conversation: Conversation) -> Iterator[bool]:
    """Yield for each message whether the recorded agent had compacted its context before it."""
    after = {compaction.after for compaction in conversation.compactions}
    seen = False
    for message in conversation.messages:
        yield seen
        seen = seen or message.id in after


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
    results = [cell_of(index, log, budget) for index, log in replayed]
    steps = [len(result.runs.at) for result in results]
    names = {
        "conversation": [
            index.conversation.id for (index, _), count in zip(replayed, steps, strict=True) for _ in range(count)
        ],
        "strategy": Constant(spec, sum(steps)),
    }
    measured = measure(results)
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
    _write_contexts(part, spec, replayed)
    _write_events(part, spec, replayed)
    refetch_tokens = _write_grounding(part, spec, replayed)
    _write_survival(part, spec, replayed)
    marks = [marks for _, log in replayed for marks in log.marks]
    steps_columns = {**names, **measured, **_constraints(replayed), "refetch_tokens": refetch_tokens}
    part.write("steps", {**steps_columns, "marks": marks, "tools_added": _tools_added(replayed)})
    part.write(
        "results",
        {
            "conversation": [index.conversation.id for index in indexes],
            "strategy": Constant(spec, len(indexes)),
            "status": ["ok" if isinstance(log, ContextLog) else "failed" for log in logs],
            "detail": ["" if isinstance(log, ContextLog) else log for log in logs],
            "steps": [len(log.runs.at) if isinstance(log, ContextLog) else 0 for log in logs],
            "budget": [budget] * len(logs),
            "repeats": repeats,
        },
    )
    return sum(steps)


def _constraints(replayed: Iterable[tuple[ConversationIndex, ContextLog]]) -> dict[str, list[int]]:
    """Return for each step how many constraints had been stated, and how many of those its context still had."""
    pairs = [
        (index.constraints.by_step, retained_constraints(index.constraints, log.runs, log.written))
        for index, log in replayed
    ]
    return {
        "constraints": [count for stated, _ in pairs for count in stated.tolist()],
        "constraints_kept": [count for _, kept in pairs for count in kept.tolist()],
    }


def _tools_added(replayed: Iterable[tuple[ConversationIndex, ContextLog]]) -> list[list[str]]:
    """Return for each step the names of the tools that are not the recording's."""
    tools_by_step: list[list[str]] = []
    for index, log in replayed:
        recorded = before = index.conversation.tools
        names: list[str] = []
        for tools in log.tools:
            if tools is not before:
                before, names = tools, [tool.name for tool in tools if tool not in recorded]
            tools_by_step.append(names)
    return tools_by_step


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


def _write_contexts(part: ResultPart, spec: str, replayed: Iterable[tuple[ConversationIndex, ContextLog]]) -> None:
    """Write the messages that the strategy wrote, if it wrote any."""
    rows = [
        (index.conversation.id, number, index.ledger.tokens(message), msgspec.json.encode(message).decode())
        for index, log in replayed
        for number, message in enumerate(log.written)
    ]
    if rows:
        names, numbers, tokens, messages = zip(*rows, strict=True)
        columns = {"conversation": names, "number": numbers, "tokens": tokens, "message": messages}
        part.write("contexts", {**columns, "strategy": Constant(spec, len(rows))})


def _write_events(part: ResultPart, spec: str, replayed: Iterable[tuple[ConversationIndex, ContextLog]]) -> None:
    """Write the actions of the strategy, if it reported any."""
    rows = [(index.conversation.id, step, event) for index, log in replayed for step, event in log.events]
    if not rows:
        return
    calls = [event if isinstance(event, Called) else None for _, _, event in rows]
    part.write(
        "events",
        {
            "conversation": [name for name, _, _ in rows],
            "strategy": Constant(spec, len(rows)),
            "step": [step for _, step, _ in rows],
            "kind": [str(event.__struct_config__.tag) for _, _, event in rows],
            "input_tokens": [call.input_tokens if call else None for call in calls],
            "output_tokens": [call.output_tokens if call else None for call in calls],
            "cost": [call.cost if call else None for call in calls],
            "about": [call.about if call and call.role == "summariser" else None for call in calls],
            "shown": [call.shown if call and call.role == "summariser" else None for call in calls],
            "event": [msgspec.json.encode(event).decode() for _, _, event in rows],
        },
    )


def _write_grounding(part: ResultPart, spec: str, replayed: Sequence[tuple[ConversationIndex, ContextLog]]) -> Ints:
    """Write what the recorded model used next, and how much of it each context still had.

    Returns for each step the tokens of the messages that have the rest.
    """
    demands = [index.demands for index, _ in replayed]
    kept = [retained(index.demands, log.runs, log.written) for index, log in replayed]
    rows = sum(len(demand.step) for demand in demands)
    part.write(
        "grounding",
        {
            "conversation": [
                index.conversation.id for (index, _), demand in zip(replayed, demands, strict=True) for _ in demand.step
            ],
            "strategy": Constant(spec, rows),
            "step": [step for demand in demands for step in demand.step.tolist()],
            "of": [of for demand in demands for of in demand.of],
            "kind": [kind for demand in demands for kind in demand.kind],
            "values": [count for demand in demands for count in demand.values.tolist()],
            "kept": [
                count
                for demand, is_kept in zip(demands, kept, strict=True)
                for count in by_row(demand, is_kept).tolist()
            ],
        },
    )
    tokens = (np.diff(index.ledger.running(len(index.conversation.messages))) for index, _ in replayed)
    return np.concatenate(
        [
            np.zeros(0, np.int64),
            *(
                refetched(index.demands, is_kept, of_messages, len(log.runs.at))
                for (index, log), is_kept, of_messages in zip(replayed, kept, tokens, strict=True)
            ),
        ]
    )


def _write_survival(part: ResultPart, spec: str, replayed: Iterable[tuple[ConversationIndex, ContextLog]]) -> None:
    """Write how long facts outlived being summarised, if there were summaries."""
    rows = [(index.conversation.id, row) for index, log in replayed for row in survival(_rounds(index, log))]
    if rows:
        part.write(
            "survival",
            {
                "conversation": [name for name, _ in rows],
                "strategy": Constant(spec, len(rows)),
                "kind": [row.kind for _, row in rows],
                "age": [row.age for _, row in rows],
                "values": [row.values for _, row in rows],
                "kept": [row.kept for _, row in rows],
            },
        )


def _rounds(index: ConversationIndex, log: ContextLog) -> list[Round]:
    """Return the rounds of summarising. A summary of summaries replaces no messages, and empties the level below."""
    in_force: dict[tuple[str, int], str] = {}
    rounds = []
    for _, event in log.events:
        if isinstance(event, Summarised):
            below = {(event.by, level) for level in range(1, event.level)}
            in_force = {place: text for place, text in in_force.items() if place not in below}
            in_force[event.by, event.level] = event.summary
            replaced = [fact for name in event.replaced for fact in index.facts_in(name)] if event.level == 1 else []
            rounds.append(Round(replaced, "\n".join(in_force.values())))
    return rounds
