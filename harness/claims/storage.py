"""C11–C14, C23–C25: what archiving saves and loses, which trigger loads, and how the archive compresses."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq

from ctxbench.metrics.compression import adaptive_bytes
from ctxbench.metrics.statistics.intervals import Floats, Interval, Statistic, by_unit, of_seeds
from ctxbench.metrics.tokens import content_of
from ctxbench.metrics.value import Missing, Value
from ctxbench.scenarios.embedded import scenario
from ctxbench.scenarios.errors import MissingExtra
from ctxbench.scenarios.model import Conversation, Message, ToolCall
from ctxbench.strategies.archive.record import TOOL
from ctxbench.strategies.chain import parse
from ctxbench.strategies.events import Archived
from ctxbench.strategies.tiers.archive import ArchivedMessage, Coding, Dictionary, blocks

from ..folder.run import Run
from ..replay import ConversationIndex, RecordedContext, replay
from ..tier_bench.archive import (
    Coded,
    archive_of,
    as_json,
    as_text,
    coded,
    decompression,
    items_of,
    summaries,
    summarised,
)
from .claim import Measured, Measurement, exactly
from .inputs import ClaimInputs, of_sums, over_conversations, units_among

TURNS, CHARACTERS = 10, 50_000
"""The load of 001 §5: ten turns, each with a tool result of 50,000 characters."""
LONG = 10_000
"""Characters from which a result is archived (001 §3.4)."""


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


def with_long_results(inputs: ClaimInputs) -> list[Conversation]:
    """Return the recordings that have tool results which are long enough to be archived."""
    return [conversation for conversation in inputs.recorded if _has_long_result(conversation)]


def _results(conversation: Conversation) -> list[Message]:
    return [message for message in conversation.messages if message.role == "tool"]


def _has_long_result(conversation: Conversation) -> bool:
    return any(len(message.text) > LONG for message in _results(conversation))


def turn_tokens(inputs: ClaimInputs) -> Measurement:
    """Return the percentiles of a turn's tokens, which the remark on C12 names."""
    tokens = inputs.steps("archive").groupby(["conversation", "turn"], observed=True).tokens_sent.sum()
    p10, p50, p90 = np.percentile(tokens, [10, 50, 90]) if len(tokens) else (0, 0, 0)
    return Measurement((), {"p10": p10, "p50": p50, "p90": p90})


def lossless(inputs: ClaimInputs) -> Measurement:
    """Measure C13: every archived result is loaded again by the model's tool, and compared."""
    every = [*inputs.conversations, *inputs.recorded]
    counts = [restored(conversation, inputs) for conversation in every]
    archived = [number for _, number in counts if number]
    found: Interval | Missing = Missing("undefined", "no result is long enough to be archived")
    if archived:
        found = exactly(of_sums(counts, units=units_among(every)))
    of = f"{sum(archived):,} results of {len(archived)} conversations"
    return Measurement([Measured("restored", "archive", found, of)])


def restored(conversation: Conversation, inputs: ClaimInputs) -> tuple[int, int]:
    """Return how many archived results of a conversation come back unchanged, and how many there are."""
    if not _has_long_result(conversation):
        return 0, 0
    context = RecordedContext(ConversationIndex(conversation, inputs.counter))
    events = [event for step in replay(conversation, parse("archive"), context) for event in step.events]
    archived = [event for event in events if isinstance(event, Archived)]
    if not archived or TOOL not in context.tools:
        return 0, len(archived)
    load = context.tools[TOOL][1]
    texts = {message.id: message.text for message in conversation.messages}
    return sum(load(json.dumps({"uuid": event.uuid})) == texts[event.message] for event in archived), len(archived)


Sums = Mapping[str, Sequence[int]]
"""By conversation: right loads, loads, archived evidence."""


def triggers(inputs: ClaimInputs) -> Measurement:
    """Measure C14: right loads, loads and archived evidence, by conversation."""
    strategies = {name: f"archive(trigger='{name}')" for name in ("keyword", "semantic", "hybrid")}
    sums_of = {name: loads_of(inputs.run_of(strategy), strategy) for name, strategy in strategies.items()}
    model = of_model(inputs.run)
    absent = Missing("unsupported", "no model that calls tools has answered the probes of this run")
    units = inputs.run.units
    figures = []
    for name in ("keyword", "semantic"):
        found = absent if model is None else difference(sums_of[name], model, units)
        figures.append(Measured("difference", f"the model − {name}", found, inputs.of))
    for name, sums in (sums_of if model is None else {"model": model, **sums_of}).items():
        table = np.array(list(sums.values()), np.float64).reshape(-1, 3)
        of = f"{len(table)} conversations with archived evidence or loads"
        table = by_unit(table, [units.get(conversation, conversation) for conversation in sums])
        for figure, statistic in STATISTICS.items():
            figures.append(Measured(figure, f"trigger {name}", _shares(table, statistic), of))
    return Measurement(figures)


def loads_of(run: Run, strategy: str) -> Sums:
    """Count what a trigger without a model loaded when each probe was asked."""
    probes = _probes(run, strategy)
    return _counted(run, strategy, zip(probes.itertuples(), map(_loaded, probes.events), strict=True))


def of_model(run: Run) -> Sums | None:
    """Count what the models that answered the probes loaded with the tool; None where none loaded anything."""
    loaded: dict[tuple[str, int], list[str]] = {}
    # The extractive baseline `offline` calls no tools, so it is no model that decides what to load.
    for folder in (run.folder / "answers").glob("*"):
        for part in sorted(folder.rglob("*.parquet")) if folder.name != "offline" else ():
            columns = ["conversation", "strategy", "number", "events"]
            for answer in pq.read_table(part, columns=columns).to_pylist():
                if answer["strategy"] == "archive":
                    loaded[answer["conversation"], answer["number"]] = _loaded(answer["events"])
    if not any(loaded.values()):
        return None
    probes: list[Any] = list(_probes(run, "archive").itertuples())
    return _counted(run, "archive", ((probe, loaded.get((probe.conversation, probe.number), [])) for probe in probes))


def _probes(run: Run, strategy: str) -> pd.DataFrame:
    rows = run.probes(strategy)
    return rows[rows.failed.fillna("") == ""]


def _loaded(events: Sequence[bytes] | None) -> list[str]:
    """Return the uuids that were loaded."""
    read = map(json.loads, () if events is None else events)
    return [event["uuid"] for event in read if event["event"] == "loaded"]


def _counted(run: Run, strategy: str, loads: Iterable[tuple[Any, list[str]]]) -> Sums:
    """Count by conversation what was loaded for each probe, of what had been archived when it was asked."""
    events = run.table("events")
    events = events[(events.kind == "archived") & (events.strategy.astype(str) == strategy)]
    archived: dict[str, list[tuple[str, str, int]]] = defaultdict(list)
    for conversation, step, stored in zip(events.conversation, events.step, events.event, strict=True):
        event = json.loads(stored)
        archived[str(conversation)].append((event["uuid"], event["message"], int(step)))
    sums_by_conversation: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0])
    for probe, uuids in loads:
        conversation = str(probe.conversation)
        # The step is NaN before the first call: nothing is archived then.
        messages = {uuid: message for uuid, message, step in archived[conversation] if step <= probe.step}
        # Evidence that is sent whole cannot be loaded, and loading it would not be right: only what is archived counts.
        evidence = set(probe.evidence) & set(messages.values())
        loaded = {messages[uuid] for uuid in uuids if uuid in messages}
        if evidence or loaded:
            sums = sums_by_conversation[conversation]
            for place, size in enumerate((len(loaded & evidence), len(loaded), len(evidence))):
                sums[place] += size
    return sums_by_conversation


def _over(top: Floats, bottom: Floats) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio: Floats = top / bottom
    return ratio


STATISTICS: Mapping[str, Statistic] = {
    "f1": lambda sums: _over(2 * sums[..., 0], sums[..., 1] + sums[..., 2]),
    "precision": lambda sums: _over(sums[..., 0], sums[..., 1]),
    "recall": lambda sums: _over(sums[..., 0], sums[..., 2]),
}
"""The share of what is loaded that is evidence, the share of archived evidence that is loaded, their harmonic mean."""


def difference(before: Sums, after: Sums, units: Mapping[str, str]) -> Interval | Missing:
    """Return by how much the second F1 is larger, in pairs of conversations."""
    names = [*dict.fromkeys([*before, *after])]
    table = np.array([[*before.get(name, (0, 0, 0)), *after.get(name, (0, 0, 0))] for name in names], np.float64)
    table = by_unit(table.reshape(-1, 6), [units.get(name, name) for name in names])
    f1 = STATISTICS["f1"]
    return _shares(table, lambda sums: f1(sums[..., 3:]) - f1(sums[..., :3]), -1.0)


def _shares(table: Floats, statistic: Statistic, least: float = 0.0) -> Interval | Missing:
    """Return shares with their interval: never over 1, and differences of shares never under -1."""
    if not len(table) or not np.isfinite(float(statistic(table.sum(axis=0)))):
        return Missing("undefined", "nothing was loaded, or no archived result has evidence")
    return over_conversations(table, statistic, least, 1.0)


DOCUMENT = Coding(level=9, dictionary="none")
"""The coding of 004 §2.3: zstd, level 9."""
CODINGS = {"zstd 9, no dictionary": DOCUMENT, "zstd 19, raw dictionary": Coding()}


def _pairs(inputs: ClaimInputs) -> list[list[Conversation]]:
    """Return the conversations of the acceptance scenario in both languages, by seed."""
    return inputs.once("mem_003", lambda: [list(scenario("mem_003", None, seed)) for seed in range(3)])


def _samples(inputs: ClaimInputs) -> list[Conversation]:
    return [conversation for pair in _pairs(inputs)[: 2 if inputs.quick else 3] for conversation in pair]


def archives(inputs: ClaimInputs, name: str) -> list[tuple[int, int, float, float]]:
    """Archive each conversation of the acceptance scenario by itself; each is read back and compared.

    Return bytes before and after, and bytes a second: read from the disk, checked and decompressed; only decompressed.
    """

    def archived(conversation: Conversation) -> tuple[int, int, float, float]:
        items = items_of([conversation], inputs.counter)
        with archive_of(items, CODINGS[name]) as archive:
            return len(as_json(items)), archive.size, *decompression(archive)

    return inputs.once(f"archives {name}", lambda: list(map(archived, _samples(inputs))))


def compression(inputs: ClaimInputs) -> Measurement:
    """Measure C23: lossless and lossy rows apart. A lossless row decides, as 004 §2.3 has it for dialogue."""
    of = f"{len(_samples(inputs))} conversations of 100K tokens"
    figures = []
    for name in CODINGS:
        sizes = [(size, original) for original, size, _, _ in archives(inputs, name)]
        figures.append(Measured("saved", f"the archive, {name}", of_sums(sizes, "saving"), of))
    # A coder that knows nothing of messages does hardly better than a model of bytes. Each takes a second.
    texts = [as_json(items_of([sample], inputs.counter)) for sample in _samples(inputs)[:2]]
    modelled = of_sums([(adaptive_bytes(text), len(text)) for text in texts], "saving")
    setting = "an adaptive order-5 model of the same lines, whole"
    figures.append(Measured("saved", setting, modelled, f"{len(texts)} conversations of 100K tokens"))
    every = (summarised(items_of([sample], inputs.counter), DOCUMENT, inputs.counter) for sample in _samples(inputs))
    lossy = [sizes for sizes in every if not isinstance(sizes, Missing)]
    lacking = [(1 - sizes.values_kept, 1.0) for sizes in lossy if not isinstance(sizes.values_kept, Missing)]
    setting = "extractive summaries of 10 % of the tokens, zstd 9"
    for figure, found in (
        ("tokens", of_sums([(sizes.summary_tokens, sizes.tokens) for sizes in lossy], "saving")),
        ("bytes", of_sums([(sizes.stored, sizes.original) for sizes in lossy], "saving")),
        ("lacking", of_sums(lacking) if lacking else Missing("undefined", "there are no values")),
    ):
        figures.append(Measured(figure, setting, found, of))
    return Measurement([*figures, _vectors(inputs, 0), _vectors(inputs, 100)])


def kinds(inputs: ClaimInputs) -> Measurement:
    """Measure C24: each kind of data with the document's own means."""
    conversations = inputs.recorded or inputs.conversations
    dialogue, structured, documents = (list[tuple[float, float]]() for _ in range(3))
    for conversation in conversations:
        items = items_of([conversation], inputs.counter)
        dialogue.append(_coded([item for item in items if item.message.role in ("user", "assistant")]))
        results = [item for item in items if item.message.role == "tool"]
        structured.append(_coded([item for item in results if content_of(item.message.text, by_tool=True) == "json"]))
        summed = list(summaries(items, DOCUMENT, inputs.counter))
        kept = sum(inputs.counter.text(block.summary) for block in summed)
        documents.append((sum(block.tokens for block in summed), kept))
    units = units_among(conversations)
    widths = [_or_missing(coded, lambda coded: 4.0 * coded.width / coded.bytes_each) for coded in quantised(inputs)]

    def ratio(figure: str, setting: str, pairs: Sequence[tuple[float, float]]) -> Measured:
        both = [(pair, unit) for pair, unit in zip(pairs, units, strict=True) if all(pair)]
        found = of_sums([pair for pair, _ in both], units=[unit for _, unit in both])
        if not both:
            found = Missing("undefined", f"{'the recordings' if inputs.recorded else 'the run'} has none")
        return Measured(figure, setting, found, f"{len(both)} conversations")

    return Measurement(
        [
            ratio("text", "text of dialogue, zstd 9", dialogue),
            _vectors(inputs, 0),
            Measured("width", "vectors, product quantisation", of_seeds(widths), f"{len(widths)} seeds"),
            ratio("documents", "long documents, extractive summaries", documents),
            ratio("structured", "structured tool results (JSON), zstd 9", structured),
        ]
    )


def _coded(items: Sequence[ArchivedMessage]) -> tuple[float, float]:
    """Return the bytes of the texts, and of the same texts under zstd, block by block."""
    texts = [as_text(block) for block, _ in blocks(items, DOCUMENT.block_tokens)] if items else []
    return sum(map(len, texts)), sum(len(Dictionary().compress(text, DOCUMENT.level)) for text in texts)


def _vectors(inputs: ClaimInputs, rerank: int) -> Measured:
    """Return the share of the hits of exact search that is lost."""
    lost = of_seeds(_or_missing(coded, lambda coded: 1 - dict(coded.recall)[rerank]) for coded in quantised(inputs))
    if isinstance(lost, Interval) and not isinstance(lost.low, Missing):
        lost = lost._replace(low=max(0.0, lost.low))
    how = f", {rerank} ranked again by the exact vectors" if rerank else ""
    setting = f"vectors, product quantisation to a sixteenth{how}"
    return Measured("lost", setting, lost, f"{len(quantised(inputs))} seeds")


def _or_missing(coded: Coded | Missing, of: Callable[[Coded], float]) -> Value:
    return coded if isinstance(coded, Missing) else of(coded)


def quantised(inputs: ClaimInputs) -> list[Coded | Missing]:
    """Quantise the embeddings of the acceptance scenario by seed, and search them with its probes' questions."""

    def make() -> list[Coded | Missing]:
        try:
            return [coded(pair, inputs.counter) for pair in _pairs(inputs)]
        except MissingExtra as error:
            return [Missing("unsupported", f"needs the extra `{error.extra}`")]

    return inputs.once("quantised", make)


def speed(inputs: ClaimInputs) -> Measurement:
    """Measure C25: bytes of contents a second of the wall clock, read from the disk, checked, decompressed."""
    figures = []
    for name in CODINGS:
        of, setting = f"{len(_samples(inputs))} archives of 100K tokens", f"the archive, {name}"
        for figure, place in (("read", 2), ("bare", 3)):
            speeds = of_seeds(archive[place] / 1e6 for archive in archives(inputs, name))
            figures.append(Measured(figure, setting, speeds, of))
    return Measurement(figures)
