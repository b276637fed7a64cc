"""Write the tables of a part: a shard's conversations, or what one strategy did with them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import msgspec
import numpy as np

from ctxbench.metrics.constraints import retained_constraints
from ctxbench.metrics.grounding import by_row, refetched, retained
from ctxbench.metrics.measure import Ints, MeasuredResult, measure
from ctxbench.metrics.survival import Round, survival
from ctxbench.scenarios.model import Call, Conversation, Usage
from ctxbench.strategies.events import Called, Summarised

from ..folder.store import Constant, ResultPart
from ..replay import ContextLog, ConversationIndex

NO_CALL, NO_USAGE = Call(), Usage()


def write_recordings(
    part: ResultPart, digests: list[str], conversations: Sequence[Conversation], indexes: Sequence[ConversationIndex]
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
    for table, rows in (("contexts", _written), ("events", _events), ("survival", _survived)):
        _write_rows(part, table, spec, [row for index, log in replayed for row in rows(index, log)])
    refetch_tokens = _write_grounding(part, spec, replayed)
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
    """Return for each step the tools that are not the recording's, as JSON."""
    tools_by_step: list[list[str]] = []
    for index, log in replayed:
        recorded = before = index.conversation.tools
        added: list[str] = []
        for tools in log.tools:
            if tools is not before:
                before = tools
                added = [msgspec.json.encode(tool).decode() for tool in tools if tool not in recorded]
            tools_by_step.append(added)
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


def _write_rows(part: ResultPart, table: str, spec: str, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write a table that only some strategies have rows of."""
    if rows:
        columns = {name: [row[name] for row in rows] for name in rows[0]}
        part.write(table, {**columns, "strategy": Constant(spec, len(rows))})


def _written(index: ConversationIndex, log: ContextLog) -> Iterator[dict[str, Any]]:
    """Yield the messages that the strategy wrote."""
    for number, message in enumerate(log.written):
        text = msgspec.json.encode(message).decode()
        tokens = index.ledger.tokens(message)
        yield {"conversation": index.conversation.id, "number": number, "tokens": tokens, "message": text}


def _events(index: ConversationIndex, log: ContextLog) -> Iterator[dict[str, Any]]:
    """Yield the actions that the strategy reported."""
    for step, event in log.events:
        call = event if isinstance(event, Called) else None
        summarises = call is not None and call.role == "summariser"
        yield {
            "conversation": index.conversation.id,
            "step": step,
            "kind": str(event.__struct_config__.tag),
            "input_tokens": call.input_tokens if call else None,
            "output_tokens": call.output_tokens if call else None,
            "cost": call.cost if call else None,
            "about": call.about if call and summarises else None,
            "shown": call.shown if call and summarises else None,
            "event": msgspec.json.encode(event).decode(),
        }


def _survived(index: ConversationIndex, log: ContextLog) -> Iterator[dict[str, Any]]:
    """Yield how long facts outlived being summarised."""
    for row in survival(_rounds(index, log)):
        yield {"conversation": index.conversation.id, **row._asdict()}


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
