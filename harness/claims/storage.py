"""C11–C14: archiving tool results, the tokens that it saves, what it loses, and which trigger loads them."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec
import numpy as np
import pyarrow.parquet as pq

from ctxbench.metrics.figures import units_of
from ctxbench.metrics.statistics.intervals import Floats, Interval, Statistic, by_unit
from ctxbench.metrics.value import Missing
from ctxbench.scenarios.embedded import scenario
from ctxbench.scenarios.model import Conversation, Message, ToolCall
from ctxbench.strategies.archive.record import TOOL
from ctxbench.strategies.chain import parse
from ctxbench.strategies.events import Archived

from ..compare.figures import measured
from ..folder.run import Run
from ..replay import ConversationIndex, RecordedContext, replay
from .claim import Claimed, ClaimRow, Measurement
from .inputs import (
    ClaimInputs,
    Measures,
    never_or_always,
    of_groups,
    of_metric,
    of_sums,
    over_conversations,
    row,
    units_among,
    units_in,
)

BY_RULE = ("keyword", "semantic", "hybrid")
MODEL = "archive"
"""The strategy whose trigger is the model."""
NO_MODEL = Missing("unsupported", "no model that calls tools has answered the probes of this run")


def triggers(inputs: ClaimInputs) -> Measurement:
    """Measure C14: right loads, loads and archived evidence, by conversation."""
    sums_of = {name: counted(inputs.run_of(_spec(name)), _spec(name)) for name in BY_RULE}
    model = of_model(inputs.run)
    rows = [
        ClaimRow(
            setting="the model − " + name,
            figure="difference in F1 of what is loaded",
            unit="points",
            found=NO_MODEL if model is None else difference(sums_of[name], model, inputs.units),
            claimed=Claimed(least=0.0, above=True),
            of=inputs.of,
        )
        for name in ("keyword", "semantic")
    ]
    for name, sums in (sums_of if model is None else {"model": model, **sums_of}).items():
        table = np.array(list(sums.values()), np.float64).reshape(-1, 3)
        of = f"{len(table)} conversations with archived evidence or loads"
        table = by_unit(table, [inputs.units.get(conversation, conversation) for conversation in sums])
        for figure, statistic in (("F1", f1), ("precision", precision), ("recall", recall)):
            rows.append(
                ClaimRow(
                    setting=f"trigger {name}",
                    figure=f"{figure} of what is loaded",
                    found=_interval(table, statistic),
                    of=of,
                    decides=False,
                )
            )
    return Measurement(tuple(rows))


def _spec(trigger: str) -> str:
    return f"archive(trigger='{trigger}')"


Sums = Mapping[str, Sequence[int]]
"""By conversation: right loads, loads, archived evidence."""


class _AskedProbe(NamedTuple):
    """Evidence of a probe, and the messages that were loaded for it: columns of the table `probes`."""

    conversation: str
    number: int
    step: float
    evidence: Sequence[str]
    events: Sequence[bytes] | None


class _StoredEvent(msgspec.Struct):
    event: str
    uuid: str = ""
    message: str = ""


_read_event = msgspec.json.Decoder(_StoredEvent).decode


def counted(run: Run, strategy: str) -> Sums:
    """Count what a trigger without a model loaded when each probe was asked."""
    return _counted(run, strategy, ((probe, _loaded(probe.events)) for probe in _answered_probes(run, strategy)))


def of_model(run: Run) -> Sums | None:
    """Count what the models that answered the probes loaded with the tool; None where none loaded anything."""
    loaded: dict[tuple[str, int], list[str]] = {}
    # The extractive baseline `offline` calls no tools, so it is no model that decides what to load.
    for folder in (run.folder / "answers").glob("*"):
        for part in sorted(folder.rglob("*.parquet")) if folder.name != "offline" else ():
            columns = ["conversation", "strategy", "number", "events"]
            for answer in pq.read_table(part, columns=columns).to_pylist():
                if answer["strategy"] == MODEL:
                    loaded[answer["conversation"], answer["number"]] = _loaded(answer["events"])
    if not any(loaded.values()):
        return None
    probes = _answered_probes(run, MODEL)
    return _counted(run, MODEL, ((probe, loaded.get((probe.conversation, probe.number), [])) for probe in probes))


def _answered_probes(run: Run, strategy: str) -> Iterator[_AskedProbe]:
    rows = run.probes(strategy)
    rows = rows[rows.failed.fillna("") == ""][list(_AskedProbe._fields)]
    return map(_AskedProbe._make, rows.itertuples(index=False, name=None))


def _loaded(events: Sequence[bytes] | None) -> list[str]:
    """Return the uuids that were loaded."""
    return [event.uuid for event in map(_read_event, () if events is None else events) if event.event == "loaded"]


def _counted(run: Run, strategy: str, loads: Iterable[tuple[_AskedProbe, list[str]]]) -> Sums:
    archived = _archived(run, strategy)
    sums_by_conversation: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0])
    for probe, uuids in loads:
        messages = {
            uuid: message
            for uuid, (message, step) in archived[str(probe.conversation)].items()
            if step <= probe.step  # NaN, before the first call: nothing is archived
        }
        # Evidence that is sent whole cannot be loaded, and loading it would not be right: only what is archived counts.
        evidence = set(probe.evidence) & set(messages.values())
        loaded = {messages[uuid] for uuid in uuids if uuid in messages}
        if evidence or loaded:
            sums = sums_by_conversation[str(probe.conversation)]
            sums[0] += len(loaded & evidence)
            sums[1] += len(loaded)
            sums[2] += len(evidence)
    return sums_by_conversation


def _archived(run: Run, strategy: str) -> Mapping[str, Mapping[str, tuple[str, int]]]:
    """Return by conversation and uuid the message that was archived, and at which step."""
    events = run.table("events")
    events = events[(events.kind == "archived") & (events.strategy.astype(str) == strategy)]
    archived: dict[str, dict[str, tuple[str, int]]] = defaultdict(dict)
    for conversation, step, stored in zip(events.conversation, events.step, events.event, strict=True):
        event = _read_event(stored)
        archived[str(conversation)][event.uuid] = event.message, int(step)
    return archived


def precision(sums: Floats) -> Floats:
    """Return the share of loaded results that are evidence."""
    return _over(sums[..., 0], sums[..., 1])


def recall(sums: Floats) -> Floats:
    """Return the share of archived evidence that is loaded."""
    return _over(sums[..., 0], sums[..., 2])


def f1(sums: Floats) -> Floats:
    """Return the harmonic mean of precision and recall."""
    return _over(2 * sums[..., 0], sums[..., 1] + sums[..., 2])


def _over(top: Floats, bottom: Floats) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio: Floats = top / bottom
    return ratio


def difference(before: Sums, after: Sums, units: Mapping[str, str]) -> Interval | Missing:
    """Return by how much the second F1 is larger, in pairs of conversations."""
    names = [*dict.fromkeys([*before, *after])]
    table = np.array([[*before.get(name, (0, 0, 0)), *after.get(name, (0, 0, 0))] for name in names], np.float64)
    table = by_unit(table.reshape(-1, 6), [units.get(name, name) for name in names])
    return _interval(table, lambda sums: f1(sums[..., 3:]) - f1(sums[..., :3]), -1.0)


def _interval(table: Floats, statistic: Statistic, least: float = 0.0) -> Interval | Missing:
    """Return shares with their interval: never over 1, and differences of shares never under -1."""
    if not len(table) or not np.isfinite(float(statistic(table.sum(axis=0)))):
        return Missing("undefined", "nothing was loaded, or no archived result has evidence")
    return over_conversations(table, statistic, least, 1.0)


ARCHIVE = "archive"
TURNS, CHARACTERS = 10, 50_000
"""The load of 001 §5: ten turns, each with a tool result of 50,000 characters."""
LONG = 10_000
"""Characters from which a result is archived (001 §3.4)."""
FEW_THOUSAND = 10_000
"""Tokens under which a turn counts as a few thousand: the document gives no number."""


def saving(inputs: ClaimInputs) -> Measurement:
    """Measure C11 on the document's load; recordings and the run stand beside it."""
    run = inputs.run_strategies("archive_load", ("none", ARCHIVE), list(loads(inputs.seeds)))
    figures = measured(run)
    load = f"{TURNS} turns × {CHARACTERS:,} characters"
    of = f"{inputs.seeds} loads"
    overflowing = {name: figures.sums[name]["overflows"] for name in ("none", ARCHIVE)}
    rows = [
        ClaimRow(
            setting=f"{ARCHIVE}, {load}",
            figure="tokens saved, net",
            found=of_sums(figures.sums[ARCHIVE]["net_saving"], "saving"),
            claimed=Claimed(least=0.8),
            of=of,
        )
    ]
    for name, claimed in (("none", Claimed(least=1.0)), (ARCHIVE, Claimed(most=0.0))):
        pairs = [(float(overflows > 0), 1.0) for overflows in overflowing[name][:, 0]]
        rows.append(
            ClaimRow(
                setting=f"{name}, {load}",
                figure=f"loads that overflow {run.manifest.window:,} tokens",
                found=never_or_always(of_groups(pairs)),
                claimed=claimed,
                of=of,
            )
        )
    rows.append(row(inputs, ARCHIVE, "net_saving", "tokens saved, net", Claimed(least=0.8), decides=False))
    rows += _of_recordings(inputs)
    return Measurement(tuple(rows))


def _of_recordings(inputs: ClaimInputs) -> Iterator[ClaimRow]:
    """Yield the saving on the recordings that have long tool results."""
    with_long_results = [
        conversation
        for conversation in inputs.recorded
        if any(len(message.text) > LONG for message in _results(conversation))
    ]
    if with_long_results:
        figures = measured(inputs.run_strategies("recorded_archive", ("none", ARCHIVE), with_long_results))
        yield ClaimRow(
            setting=f"{ARCHIVE}, recordings with results over {LONG:,} characters",
            figure="tokens saved, net",
            found=of_sums(figures.sums[ARCHIVE]["net_saving"], "saving", units_in(figures)),
            claimed=Claimed(least=0.8),
            of=f"{len(with_long_results)} of {len(inputs.recorded)} conversations",
            decides=False,
        )


def loads(seeds: int) -> Iterator[Conversation]:
    """Yield the load of 001 §5 by seeds: texts of the documentation scenario in Chinese, cut to the document's size."""
    chinese = [each for each in scenario("docs_qa") if each.language == "zh"]
    pages = "".join(message.text for conversation in chinese for message in _results(conversation))
    for seed in range(seeds):
        start = seed * len(pages) // seeds
        stream = (pages[start:] + pages[:start]) * math.ceil(TURNS * CHARACTERS / len(pages))
        messages: list[Message] = [Message("s", "system", "你是文档助手。")]
        for turn in range(TURNS):
            text = stream[turn * CHARACTERS : (turn + 1) * CHARACTERS]
            call = ToolCall(f"c{turn}", "search_docs", json.dumps({"query": f"第{turn + 1}个问题"}, ensure_ascii=False))
            messages += [
                Message(f"u{turn}", "user", f"请查第{turn + 1}个问题。"),
                Message(f"a{turn}", "assistant", "", calls=(call,)),
                Message(f"t{turn}", "tool", text, answers=call.id, name="search_docs"),
                Message(f"r{turn}", "assistant", "已查到,见上。"),
            ]
        yield Conversation(f"archive_load/{seed}", tuple(messages))


def _results(conversation: Conversation) -> list[Message]:
    return [message for message in conversation.messages if message.role == "tool"]


def turns(inputs: ClaimInputs) -> Measurement:
    """Measure C12: tokens of all calls of a turn, and of single calls."""
    steps = inputs.rows(inputs.run_of(ARCHIVE), "steps")
    steps = steps[steps.strategy.astype(str) == ARCHIVE]
    per_turn = steps.groupby(["conversation", "turn"], observed=True).tokens_sent.sum().reset_index()
    rows = []
    for what, frame, decides in (("turn", per_turn, True), ("call", steps, False)):
        few = frame.assign(few=frame.tokens_sent < FEW_THOUSAND).groupby("conversation", observed=True).few
        pairs = list(zip(few.sum().astype(float), few.count().astype(float), strict=True))
        rows.append(
            ClaimRow(
                setting=f"{ARCHIVE}, a {what}",
                figure=f"{what}s of fewer than {FEW_THOUSAND:,} tokens",
                found=of_groups(pairs, units=units_of(few.sum().reset_index(), inputs.units)),
                claimed=Claimed(least=0.5),
                of=inputs.of,
                decides=decides,
            )
        )
    p10, p50, p90 = np.percentile(per_turn.tokens_sent, [10, 50, 90]) if len(per_turn) else (0, 0, 0)
    return Measurement(tuple(rows), {"p10": p10, "p50": p50, "p90": p90})


def lossless(inputs: ClaimInputs) -> Measurement:
    """Measure C13: every archived result is loaded again by the model's tool, and compared."""
    pairs, units, archived = [], [], 0
    every = [*inputs.conversations, *inputs.recorded]
    for conversation, unit in zip(every, units_among(every), strict=True):
        restored_results, archived_results = restored(conversation, inputs)
        archived += archived_results
        if archived_results:
            pairs.append((float(restored_results), float(archived_results)))
            units.append(unit)
    absent = of_metric(inputs, ARCHIVE, "evidence_absent")
    rows = (
        ClaimRow(
            setting=ARCHIVE,
            figure="archived results that come back as they were, to the byte",
            found=never_or_always(of_groups(pairs, units=units))
            if pairs
            else Missing("undefined", "no result is long enough to be archived"),
            claimed=Claimed(least=1.0),
            of=f"{archived:,} results of {len(pairs)} conversations",
        ),
        ClaimRow(
            setting=ARCHIVE,
            figure="evidence of probes that is neither sent nor can be loaded",
            found=never_or_always(absent),
            claimed=Claimed(most=0.0),
            of=inputs.of,
        ),
        row(inputs, ARCHIVE, "grounding", "values that the model used next and were still sent", None, decides=False),
        row(
            inputs,
            f"{ARCHIVE}(trigger='keyword')",
            "grounding",
            "the same, results loaded by keyword",
            None,
            decides=False,
        ),
    )
    return Measurement(rows)


def restored(conversation: Conversation, inputs: ClaimInputs) -> tuple[int, int]:
    """Return how many archived results of a conversation come back unchanged, and how many there are."""
    if not any(len(message.text) > LONG for message in _results(conversation)):
        return 0, 0
    context = RecordedContext(ConversationIndex(conversation, inputs.counter))
    archived = [
        event
        for step in replay(conversation, parse(ARCHIVE), context)
        for event in step.events
        if isinstance(event, Archived)
    ]
    if not archived or TOOL not in context.tools:
        return 0, len(archived)
    load = context.tools[TOOL][1]
    texts = {message.id: message.text for message in conversation.messages}
    same = sum(load(json.dumps({"uuid": event.uuid})) == texts[event.message] for event in archived)
    return same, len(archived)


MEASURES: Measures = {
    "C11": (saving, (ARCHIVE, "none")),
    "C12": (turns, (ARCHIVE,)),
    "C13": (lossless, (ARCHIVE, f"{ARCHIVE}(trigger='keyword')")),
    "C14": (triggers, tuple(f"archive(trigger='{trigger}')" for trigger in ("keyword", "semantic", "hybrid"))),
}
