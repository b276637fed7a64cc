"""C11–C14, C23–C25: what archiving saves and loses, which trigger loads, and how the archive compresses."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from ctxbench.metrics.compression import adaptive_bytes
from ctxbench.metrics.statistics.intervals import Floats, Interval, Statistic, by_unit, of_seeds, over_units
from ctxbench.metrics.tokens import content_of
from ctxbench.metrics.value import Missing, Value
from ctxbench.scenarios.embedded import scenario
from ctxbench.scenarios.errors import MissingExtra
from ctxbench.scenarios.model import Conversation, Message, ToolCall
from ctxbench.strategies.archive.record import TOOL
from ctxbench.strategies.chain import parse
from ctxbench.strategies.events import Archived
from ctxbench.strategies.tiers.archive import ArchivedMessage, Coding, Dictionary

from ..folder.run import Run
from ..replay import ConversationIndex, RecordedContext, replay
from ..tier_bench.archive import (
    Coded,
    Speed,
    as_json,
    as_text,
    coded,
    coded_blocks,
    items_of,
    summaries,
    summarised,
    written,
)
from .claim import Measured, exactly
from .inputs import ClaimInputs, of_sums, units_among

TURNS, CHARACTERS = 10, 50_000
"""The load of 001 §5: ten turns, each with a tool result of 50,000 characters."""
LONG = 10_000
"""Characters from which a result is archived (001 §3.4)."""


def loads(seeds: int) -> Iterator[Conversation]:
    """Yield the load of 001 §5 by seeds: texts of the documentation scenario in Chinese, cut to the document's size."""
    chinese = [each for each in scenario("docs_qa") if each.language == "zh"]
    pages = "".join(message.text for each in chinese for message in each.messages if message.role == "tool")
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


def _has_long_result(conversation: Conversation) -> bool:
    return any(message.role == "tool" and len(message.text) > LONG for message in conversation.messages)


def turn_tokens(inputs: ClaimInputs) -> Iterator[dict[str, float | str]]:
    """Yield the percentiles of a turn's tokens, which the remark on C12 names."""
    tokens = inputs.steps("archive").groupby(["conversation", "turn"], observed=True).tokens_sent.sum()
    yield {f"p{level}": float(np.percentile(tokens, level)) if len(tokens) else 0.0 for level in (10, 50, 90)}


def lossless(inputs: ClaimInputs) -> Iterator[Measured]:
    """Measure C13: every archived result is loaded again by the model's tool, and compared."""
    every = [*inputs.conversations, *inputs.recorded]
    counts = [restored(conversation, inputs) for conversation in every]
    archived = [number for _, number in counts if number]
    found: Interval | Missing = Missing("undefined", "no result is long enough to be archived")
    if archived:
        found = exactly(of_sums(counts, units=units_among(every)))
    yield Measured("restored", "archive", found, f"{sum(archived):,} results of {len(archived)} conversations")


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


def of_loads(inputs: ClaimInputs, strategy: str, against: str, figure: str) -> tuple[Interval | Missing | None, str]:
    """Return a figure of what a trigger, or `model`, loaded for the probes (C14), less that of another; and the sample.

    None if no model that calls tools has answered the probes.
    """
    ours, base = (loads_of(inputs, name) if name else {} for name in (strategy, against))
    if ours is None or base is None:
        return None, inputs.of
    names = [*dict.fromkeys([*base, *ours])]
    none, statistic = (0, 0, 0), STATISTICS[figure]
    table = np.array([[*base.get(name, none), *ours.get(name, none)] for name in names], np.float64).reshape(-1, 6)
    table = by_unit(table, [inputs.run.units.get(name, name) for name in names])

    def less(sums: Floats) -> Floats:
        before: Floats = statistic(sums[..., :3]) if against else np.float64(0)  # type: ignore[assignment]
        return statistic(sums[..., 3:]) - before

    found: Interval | Missing = Missing("undefined", "nothing was loaded, or no archived result has evidence")
    if len(table) and np.isfinite(float(less(table.sum(axis=0)))):
        found = over_units(table, less, -1.0 if against else 0.0, 1.0)
    return found, inputs.of if against else f"{len(names)} conversations with archived evidence or loads"


def loads_of(inputs: ClaimInputs, strategy: str) -> Sums | None:
    """Count what was loaded when each probe was asked: by a trigger without a model, or by `model`, with the tool.

    None where no model that answered the probes loaded anything.
    """
    if strategy == "model":
        run, strategy, loaded = inputs.run, "archive", _loaded_by_models(inputs.run)
        if not any(loaded.values()):
            return None
    else:
        run, loaded = inputs.run_of(strategy), None
    rows = run.probes(strategy)
    probes: list[Any] = list(rows[rows.failed.fillna("") == ""].itertuples())
    events = run.table("events")
    events = events[(events.kind == "archived") & (events.strategy.astype(str) == strategy)]
    archived: dict[str, list[tuple[str, str, int]]] = defaultdict(list)
    for conversation, step, stored in zip(events.conversation, events.step, events.event, strict=True):
        event = json.loads(stored)
        archived[str(conversation)].append((event["uuid"], event["message"], int(step)))
    sums_by_conversation: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0])
    for probe in probes:
        conversation = str(probe.conversation)
        uuids = _uuids(probe.events) if loaded is None else loaded.get((conversation, probe.number), [])
        # The step is NaN before the first call: nothing is archived then.
        messages = {uuid: message for uuid, message, step in archived[conversation] if step <= probe.step}
        # Evidence that is sent whole cannot be loaded, and loading it would not be right: only what is archived counts.
        evidence = set(probe.evidence) & set(messages.values())
        found = {messages[uuid] for uuid in uuids if uuid in messages}
        if evidence or found:
            sums = sums_by_conversation[conversation]
            for place, size in enumerate((len(found & evidence), len(found), len(evidence))):
                sums[place] += size
    return sums_by_conversation


def _loaded_by_models(run: Run) -> dict[tuple[str, int], list[str]]:
    """Return the uuids that models loaded for each probe. The extractive baseline `offline` calls no tools."""
    loaded: dict[tuple[str, int], list[str]] = {}
    for folder in (run.folder / "answers").glob("*"):
        for part in sorted(folder.rglob("*.parquet")) if folder.name != "offline" else ():
            columns = ["conversation", "strategy", "number", "events"]
            for answer in pq.read_table(part, columns=columns).to_pylist():
                if answer["strategy"] == "archive":
                    loaded[answer["conversation"], answer["number"]] = _uuids(answer["events"])
    return loaded


def _uuids(events: Sequence[bytes] | None) -> list[str]:
    read = map(json.loads, () if events is None else events)
    return [event["uuid"] for event in read if event["event"] == "loaded"]


DOCUMENT = Coding(level=9, dictionary="none")
"""The coding of 004 §2.3: zstd, level 9."""
CODINGS = {"zstd 9, no dictionary": DOCUMENT, "zstd 19, raw dictionary": Coding()}


def _pairs(inputs: ClaimInputs) -> list[list[Conversation]]:
    """Return the conversations of the acceptance scenario in both languages, by seed."""
    return inputs.once("mem_003", lambda: [list(scenario("mem_003", None, seed)) for seed in range(3)])


def _samples(inputs: ClaimInputs) -> list[list[ArchivedMessage]]:
    """Return the messages of each conversation of the acceptance scenario."""

    def make() -> list[list[ArchivedMessage]]:
        pairs = _pairs(inputs)[: 2 if inputs.settings.quick else 3]
        return [items_of([conversation], inputs.counter) for pair in pairs for conversation in pair]

    return inputs.once("items of mem_003", make)


def archives(inputs: ClaimInputs, name: str) -> list[tuple[int, Speed]]:
    """Archive each conversation of the acceptance scenario by itself. Return the bytes of each, and its speed."""
    return inputs.once(f"archives {name}", lambda: [written(items, CODINGS[name]) for items in _samples(inputs)])


def compression(inputs: ClaimInputs) -> Iterator[Measured]:
    """Measure C23: lossless and lossy rows apart. A lossless row decides, as 004 §2.3 has it for dialogue."""
    samples = _samples(inputs)
    of = f"{len(samples)} conversations of 100K tokens"
    for name in CODINGS:
        written_sizes = [size for size, _ in archives(inputs, name)]
        sizes = [(size, len(as_json(sample))) for size, sample in zip(written_sizes, samples, strict=True)]
        yield Measured("saved", f"the archive, {name}", of_sums(sizes, "saving"), of)
    # A coder that knows nothing of messages does hardly better than a model of bytes. Each takes a second.
    texts = [as_json(sample) for sample in samples[:2]]
    modelled = of_sums([(adaptive_bytes(text), len(text)) for text in texts], "saving")
    setting = "an adaptive order-5 model of the same lines, whole"
    yield Measured("saved", setting, modelled, f"{len(texts)} conversations of 100K tokens")
    every = (summarised(sample, DOCUMENT, inputs.counter) for sample in samples)
    lossy = [sizes for sizes in every if not isinstance(sizes, Missing)]
    lacking = [(1 - sizes.values_kept, 1.0) for sizes in lossy if not isinstance(sizes.values_kept, Missing)]
    setting = "extractive summaries of 10 % of the tokens, zstd 9"
    tokens = of_sums([(sizes.summary_tokens, sizes.tokens) for sizes in lossy], "saving")
    yield Measured("tokens", setting, tokens, of)
    yield Measured("bytes", setting, of_sums([(sizes.stored, sizes.original) for sizes in lossy], "saving"), of)
    none = Missing("undefined", "there are no values")
    yield Measured("lacking", setting, of_sums(lacking) if lacking else none, of)
    yield _vectors(inputs, 0)
    yield _vectors(inputs, 100)


def kinds(inputs: ClaimInputs) -> Iterator[Measured]:
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

    def ratio(figure: str, setting: str, pairs: Sequence[tuple[float, float]]) -> Measured:
        both = [(pair, unit) for pair, unit in zip(pairs, units, strict=True) if all(pair)]
        found = of_sums([pair for pair, _ in both], units=[unit for _, unit in both])
        if not both:
            found = Missing("undefined", f"{'the recordings' if inputs.recorded else 'the run'} has none")
        return Measured(figure, setting, found, f"{len(both)} conversations")

    yield ratio("text", "text of dialogue, zstd 9", dialogue)
    yield _vectors(inputs, 0)
    widths = _of_quantised(inputs, lambda coded: 4.0 * coded.width / coded.bytes_each)
    yield Measured("width", "vectors, product quantisation", of_seeds(widths), f"{len(widths)} seeds")
    yield ratio("documents", "long documents, extractive summaries", documents)
    yield ratio("structured", "structured tool results (JSON), zstd 9", structured)


def _coded(items: Sequence[ArchivedMessage]) -> tuple[float, float]:
    """Return the bytes of the texts, and of the same texts under zstd, block by block."""
    texts = coded_blocks(items, DOCUMENT, as_text) if items else []
    return sum(map(len, texts)), sum(len(Dictionary().compress(text, DOCUMENT.level)) for text in texts)


def _vectors(inputs: ClaimInputs, rerank: int) -> Measured:
    """Return the share of the hits of exact search that is lost."""
    losses = _of_quantised(inputs, lambda coded: 1 - coded.recall[rerank])
    lost = of_seeds(losses)
    if isinstance(lost, Interval) and not isinstance(lost.low, Missing):
        lost = lost._replace(low=max(0.0, lost.low))
    how = f", {rerank} ranked again by the exact vectors" if rerank else ""
    return Measured("lost", f"vectors, product quantisation to a sixteenth{how}", lost, f"{len(losses)} seeds")


def _of_quantised(inputs: ClaimInputs, of: Callable[[Coded], float]) -> list[Value]:
    """Return a figure of the quantised embeddings of the acceptance scenario, searched with its questions, by seed."""

    def make() -> list[Coded | Missing]:
        try:
            return [coded(pair, inputs.counter) for pair in _pairs(inputs)]
        except MissingExtra as error:
            return [Missing("unsupported", f"needs the extra `{error.extra}`")]

    return [each if isinstance(each, Missing) else of(each) for each in inputs.once("quantised", make)]


def speed(inputs: ClaimInputs) -> Iterator[Measured]:
    """Measure C25: bytes of contents a second of the wall clock, read from the disk, checked, decompressed."""
    for name in CODINGS:
        of, setting = f"{len(_samples(inputs))} archives of 100K tokens", f"the archive, {name}"
        speeds = [speed for _, speed in archives(inputs, name)]
        yield Measured("read", setting, of_seeds(speed.decompress / 1e6 for speed in speeds), of)
        yield Measured("bare", setting, of_seeds(speed.bare / 1e6 for speed in speeds), of)
