"""C23–C25: the bytes that the Archive tier saves, what is lost by it, and how fast it is read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from ctxbench.metrics.compression import adaptive_bytes
from ctxbench.metrics.statistics.intervals import Interval, of_seeds
from ctxbench.metrics.tokens import content_of
from ctxbench.metrics.value import Missing, Value
from ctxbench.scenarios.embedded import scenario
from ctxbench.scenarios.errors import MissingExtra
from ctxbench.scenarios.model import Conversation
from ctxbench.strategies.tiers.archive import ArchivedMessage, Coding
from ctxbench.strategies.tiers.archive.archive import blocks
from ctxbench.strategies.tiers.archive.codec import Dictionary

from ..tier_bench.archive import (
    SHARE,
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
from .claim import Claimed, ClaimRow, Measurement, without_extra
from .inputs import ClaimInputs, Measures, of_groups, units_among

SEEDS = 3
"""Seeds of the acceptance scenario, at most; each has a conversation in either language."""
DOCUMENT = Coding(level=9, dictionary="none")
"""The coding of 004 §2.3: zstd, level 9."""
MODELLED = 2
"""Conversations that the byte model compresses: each takes a second."""
CODINGS = {"zstd 9, no dictionary": DOCUMENT, "zstd 19, raw dictionary": Coding()}
SAVED = "bytes saved, lossless"


class ArchivedConversation(NamedTuple):
    """One conversation archived: bytes before and after, and bytes a second of reading it."""

    original: int
    size: int
    decompress: float
    """Read from the disk, checked, decompressed."""
    bare: float
    """Only decompressed."""


def _samples(inputs: ClaimInputs) -> list[Conversation]:
    seeds = 2 if inputs.quick else SEEDS
    return [conversation for pair in _pairs(inputs)[:seeds] for conversation in pair]


def _pairs(inputs: ClaimInputs) -> list[list[Conversation]]:
    """Return by seed the conversations in both languages."""
    return inputs.once("mem_003", lambda: [list(scenario("mem_003", None, seed)) for seed in range(SEEDS)])


def _archives(inputs: ClaimInputs, name: str) -> list[ArchivedConversation]:
    """Archive each conversation of the acceptance scenario by itself; each is read back and compared."""

    def make() -> list[ArchivedConversation]:
        return [_written(items_of([conversation], inputs.counter), CODINGS[name]) for conversation in _samples(inputs)]

    return inputs.once(f"archives {name}", make)


def _written(items: Sequence[ArchivedMessage], coding: Coding) -> ArchivedConversation:
    with archive_of(items, coding) as archive:
        return ArchivedConversation(len(as_json(items)), archive.size, *decompression(archive))


def compression(inputs: ClaimInputs) -> Measurement:
    """Measure C23: lossless and lossy rows apart. A lossless row decides, as 004 §2.3 has it for dialogue."""
    of = f"{len(_samples(inputs))} conversations of 100K tokens"
    rows = [
        ClaimRow(
            setting=f"the archive, {name}",
            figure=SAVED,
            found=of_groups(
                [(float(sample.size), float(sample.original)) for sample in _archives(inputs, name)], "saving"
            ),
            claimed=Claimed(least=0.9, above=True),
            of=of,
            decides=name == "zstd 19, raw dictionary",  # by bytes, lossless: 004 gives 0 % loss for dialogue
        )
        for name in CODINGS
    ]
    rows.append(_modelled(inputs))
    every = (summarised(items_of([sample], inputs.counter), DOCUMENT, inputs.counter) for sample in _samples(inputs))
    lossy = [sizes for sizes in every if not isinstance(sizes, Missing)]
    values_kept = [sample.values_kept for sample in lossy if not isinstance(sample.values_kept, Missing)]
    summary = f"extractive summaries of {SHARE:.0%} of the tokens, zstd 9".replace("%", " %")
    pairs = {
        "tokens saved, lossy": [(float(sample.summary_tokens), float(sample.tokens)) for sample in lossy],
        "bytes saved, lossy": [(float(sample.stored), float(sample.original)) for sample in lossy],
    }
    rows += [
        ClaimRow(
            setting=summary,
            figure=figure,
            found=of_groups(sizes, "saving"),
            claimed=Claimed(least=0.9),
            of=of,
            decides=False,
        )
        for figure, sizes in pairs.items()
    ]
    rows += [
        ClaimRow(
            setting=summary,
            figure="values that the summary lacks",
            found=of_groups([(1 - share, 1.0) for share in values_kept])
            if values_kept
            else Missing("undefined", "there are no values"),
            claimed=Claimed(most=0.02),
            of=of,
            decides=False,
        ),
        _vectors(inputs, 0, decides=False),
        _vectors(inputs, 100, decides=False),
    ]
    return Measurement(tuple(rows))


def _modelled(inputs: ClaimInputs) -> ClaimRow:
    """Return the bytes that a model of bytes would save: a coder that knows nothing of messages does hardly better."""

    def pair(conversation: Conversation) -> tuple[float, float]:
        text = as_json(items_of([conversation], inputs.counter))
        return float(adaptive_bytes(text)), float(len(text))

    pairs = [pair(conversation) for conversation in _samples(inputs)[:MODELLED]]
    return ClaimRow(
        setting="an adaptive order-5 model of the same lines, whole",
        figure=SAVED,
        found=of_groups(pairs, "saving"),
        claimed=Claimed(least=0.9, above=True),
        of=f"{len(pairs)} conversations of 100K tokens",
        decides=False,
    )


def kinds(inputs: ClaimInputs) -> Measurement:
    """Measure C24: each kind of data with the document's own means."""
    conversations = inputs.recorded or inputs.conversations
    units, what = units_among(conversations), "the recordings" if inputs.recorded else "the run"
    dialogue, structured, documents = (list[tuple[float, float]]() for _ in range(3))
    for conversation in conversations:
        items = items_of([conversation], inputs.counter)
        dialogue.append(_coded([item for item in items if item.message.role in ("user", "assistant")], DOCUMENT.level))
        structured.append(_coded([item for item in items if _is_structured(item)], DOCUMENT.level))
        blocks = list(summaries(items, DOCUMENT, inputs.counter))
        in_summaries = sum(inputs.counter.text(block.summary) for block in blocks)
        documents.append((float(sum(block.tokens for block in blocks)), float(in_summaries)))
    rows = (
        _ratio("text of dialogue, zstd 9", dialogue, units, 5.0, what),
        _vectors(inputs, 0, decides=True),
        _width(inputs),
        _ratio("long documents, extractive summaries", documents, units, 10.0, what),
        _ratio("structured tool results (JSON), zstd 9", structured, units, 8.0, what),
    )
    return Measurement(rows)


def _is_structured(item: ArchivedMessage) -> bool:
    return item.message.role == "tool" and content_of(item.message.text, by_tool=True) == "json"


def _coded(items: Sequence[ArchivedMessage], level: int) -> tuple[float, float]:
    """Return the bytes of the texts, and of the same texts under zstd, block by block."""
    texts = [as_text(block) for block, _ in blocks(items, DOCUMENT.block_tokens)] if items else []
    return float(sum(map(len, texts))), float(sum(len(Dictionary().compress(text, level)) for text in texts))


def _ratio(
    setting: str, pairs: Sequence[tuple[float, float]], units: Sequence[str], least: float, what: str
) -> ClaimRow:
    present = [(pair, unit) for pair, unit in zip(pairs, units, strict=True) if all(pair)]
    return ClaimRow(
        setting=setting,
        figure="original over compressed",
        unit="times",
        found=of_groups([pair for pair, _ in present], units=[unit for _, unit in present])
        if present
        else Missing("undefined", f"{what} has none"),
        claimed=Claimed(least=least),
        of=f"{len(present)} conversations",
    )


def _width(inputs: ClaimInputs) -> ClaimRow:
    """Return the bytes of a vector over those of its code, which are fixed by construction."""
    ratios = [_or_missing(coded, lambda coded: 4.0 * coded.width / coded.bytes_each) for coded in _quantised(inputs)]
    return ClaimRow(
        setting="vectors, product quantisation",
        figure="original over compressed",
        unit="times",
        found=of_seeds(ratios),
        claimed=Claimed(least=16.0),
        of=f"{len(ratios)} seeds",
    )


def _vectors(inputs: ClaimInputs, rerank: int, *, decides: bool) -> ClaimRow:
    """Return the share of the hits of exact search that is lost."""
    lost = [_or_missing(coded, lambda coded: 1 - dict(coded.recall)[rerank]) for coded in _quantised(inputs)]
    how = f", {rerank} ranked again by the exact vectors" if rerank else ""
    return ClaimRow(
        setting=f"vectors, product quantisation to a sixteenth{how}",
        figure="of the exact nearest 10 not found",
        found=_no_less(of_seeds(lost)),
        claimed=Claimed(most=0.02),
        of=f"{len(lost)} seeds",
        decides=decides,
    )


def _no_less(loss: Interval | Missing) -> Interval | Missing:
    """Return an interval of a loss, cut off below 0."""
    if isinstance(loss, Missing) or isinstance(loss.low, Missing):
        return loss
    return loss._replace(low=max(0.0, loss.low))


def _or_missing(coded: Coded | Missing, of: Callable[[Coded], float]) -> Value:
    return coded if isinstance(coded, Missing) else of(coded)


def _quantised(inputs: ClaimInputs) -> list[Coded | Missing]:
    """Quantise the embeddings of the acceptance scenario by seed, and search them with its probes' questions."""

    def make() -> list[Coded | Missing]:
        try:
            return [coded(pair, inputs.counter) for pair in _pairs(inputs)]
        except MissingExtra as error:
            return [without_extra(error.extra)]

    return inputs.once("quantised", make)


def speed(inputs: ClaimInputs) -> Measurement:
    """Measure C25: bytes of contents a second of the wall clock, read from the disk, checked, decompressed."""
    rows = []
    for name in CODINGS:
        archives = _archives(inputs, name)
        for what, values, decides in (
            (
                "read, checked and decompressed",
                [archive.decompress / 1e6 for archive in archives],
                name.startswith("zstd 9"),
            ),
            ("decompressed, nothing else (as zstd -b)", [archive.bare / 1e6 for archive in archives], False),
        ):
            rows.append(
                ClaimRow(
                    setting=f"the archive, {name}",
                    figure=what,
                    unit="MB/s",
                    found=of_seeds(values),
                    claimed=Claimed(least=500.0, above=True),
                    of=f"{len(archives)} archives of 100K tokens",
                    decides=decides,
                    timed=True,
                )
            )
    return Measurement(tuple(rows))


MEASURES: Measures = {
    "C23": (compression, ()),
    "C24": (kinds, ()),
    "C25": (speed, ()),
}
