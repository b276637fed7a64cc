"""C23–C25: what the Archive tier saves, at what loss, and how fast it is read (design document 004)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from ...metrics.compression import adaptive_bytes
from ...metrics.statistics.intervals import Interval, of_seeds
from ...metrics.tokens import content_of
from ...metrics.value import Missing, Value
from ...scenarios.embedded import scenario
from ...scenarios.errors import MissingExtra
from ...scenarios.model import Conversation
from ...strategies.tiers.archive import ArchivedMessage, Coding
from ...strategies.tiers.archive.archive import blocks
from ...strategies.tiers.archive.codec import Dictionary
from ..tier_bench.archive import (
    PLAIN,
    SHARE,
    Coded,
    Lossy,
    Speed,
    as_json,
    as_text,
    coded,
    items_of,
    summarised,
    written,
)
from .claim import Claim, Claimed, ClaimRow, Measurement
from .inputs import ClaimInputs
from .rows import of_groups

SEEDS = 3
"""Of the acceptance scenario, at most, in two languages each."""
DOCUMENT = Coding(level=9, dictionary="none")
"""004 §2.3: zstd, level 9."""
MODELLED = 2
"""Conversations that the model is put to: it takes a second each."""
CODINGS = {"zstd 9, no dictionary": DOCUMENT, "zstd 19, raw dictionary": Coding()}
SAVED = "bytes saved, lossless"


class ArchivedConversation(NamedTuple):
    """One conversation archived: bytes before and after, and how fast."""

    original: int
    size: int
    speed: Speed


def _samples(inputs: ClaimInputs) -> list[Conversation]:
    seeds = 2 if inputs.quick else SEEDS
    return [each for pair in _pairs(inputs)[:seeds] for each in pair]


def _pairs(inputs: ClaimInputs) -> list[list[Conversation]]:
    """By seed, in both languages."""
    return inputs.once("mem_003", lambda: [list(scenario("mem_003", None, seed)) for seed in range(SEEDS)])


def _archives(inputs: ClaimInputs, name: str) -> list[ArchivedConversation]:
    """Each conversation of the acceptance scenario in an archive of its own. Each is read back and compared."""

    def make() -> list[ArchivedConversation]:
        return [_written(items_of([each], inputs.counter), CODINGS[name]) for each in _samples(inputs)]

    return inputs.once(f"archives {name}", make)


def _written(items: Sequence[ArchivedMessage], coding: Coding) -> ArchivedConversation:
    with TemporaryDirectory(prefix="ctxbench-claims-") as folder:
        size, speed = written(items, coding, Path(folder))
    return ArchivedConversation(len(as_json(items)), size, speed)


def compression(inputs: ClaimInputs) -> Measurement:
    """C23. Lossless and lossy rows apart; what decides is lossless, as 004 §2.3 has it for dialogue."""
    of = f"{len(_samples(inputs))} conversations of 100K tokens"
    rows = [
        ClaimRow(
            setting=f"the archive, {name}",
            figure=SAVED,
            unit="share",
            found=of_groups([(float(each.size), float(each.original)) for each in _archives(inputs, name)], "saving"),
            claimed=Claimed(least=0.9, above=True),
            of=of,
            decides=name == "zstd 19, raw dictionary",
        )
        for name in CODINGS
    ]
    rows.append(_modelled(inputs))
    lossy = [found for each in _samples(inputs) if not isinstance(found := _summary(each, inputs), Missing)]
    kept = [each.values_kept for each in lossy if not isinstance(each.values_kept, Missing)]
    summary = f"extractive summaries of {SHARE:.0%} of the tokens, zstd 9".replace("%", " %")
    pairs = {
        "tokens saved, lossy": [(float(each.summary_tokens), float(each.tokens)) for each in lossy],
        "bytes saved, lossy": [(float(each.stored), float(each.original)) for each in lossy],
    }
    rows += [
        ClaimRow(
            setting=summary,
            figure=figure,
            unit="share",
            found=of_groups(each, "saving"),
            claimed=Claimed(least=0.9),
            of=of,
            decides=False,
        )
        for figure, each in pairs.items()
    ]
    rows += [
        ClaimRow(
            setting=summary,
            figure="values that the summary lacks",
            unit="share",
            found=of_groups([(1 - each, 1.0) for each in kept])
            if kept
            else Missing("undefined", "there are no values"),
            claimed=Claimed(most=0.02),
            of=of,
            decides=False,
        ),
        _vectors(inputs, 0, decides=False),
        _vectors(inputs, 100, decides=False),
    ]
    return Measurement(
        tuple(rows),
        "The archive knows what a message is made of, which a model of bytes does not: so it can save more. "
        "Lossy rows save what they are told to save, and lose what is shown.",
        "Text that repeats itself more than dialogue does, or a loss.",
    )


def _modelled(inputs: ClaimInputs) -> ClaimRow:
    """What a model of the bytes alone would save: a coder that knows nothing of messages does hardly better."""

    def pair(said: Conversation) -> tuple[float, float]:
        text = as_json(items_of([said], inputs.counter))
        return float(adaptive_bytes(text)), float(len(text))

    pairs = [pair(each) for each in _samples(inputs)[:MODELLED]]
    return ClaimRow(
        setting="an adaptive order-5 model of the same lines, whole",
        figure=SAVED,
        unit="share",
        found=of_groups(pairs, "saving"),
        claimed=Claimed(least=0.9, above=True),
        of=f"{len(pairs)} conversations of 100K tokens",
        decides=False,
    )


def _summary(said: Conversation, inputs: ClaimInputs) -> Lossy | Missing:
    return summarised(items_of([said], inputs.counter), DOCUMENT, inputs.counter)


def kinds(inputs: ClaimInputs) -> Measurement:
    """C24. Each kind of data with the document's own means."""
    said = inputs.recorded or inputs.said
    what = "the recordings" if inputs.recorded else "the run"
    dialogue, structured = list[tuple[float, float]](), list[tuple[float, float]]()
    for each in said:
        items = items_of([each], inputs.counter)
        dialogue.append(_coded([item for item in items if item.message.role in ("user", "assistant")], DOCUMENT.level))
        structured.append(_coded([item for item in items if _is_structured(item)], DOCUMENT.level))
    summaries = [found for each in said if not isinstance(found := _summary(each, inputs), Missing)]
    rows = (
        _ratio("text of dialogue, zstd 9", dialogue, 5.0, what),
        _vectors(inputs, 0, decides=True),
        _width(inputs),
        _ratio(
            "long documents, extractive summaries",
            [(float(each.tokens), float(each.summary_tokens)) for each in summaries],
            10.0,
            what,
        ),
        _ratio("structured tool results (JSON), zstd 9", structured, 8.0, what),
    )
    return Measurement(
        rows,
        "Each conversation is coded alone, in blocks of 64K tokens. A summary has the length that it is given; what it "
        "loses is in C23. Quantised vectors keep their rank only if candidates are ranked again by the exact ones.",
        "Longer and more repetitive conversations; for vectors, re-ranking, which needs the originals.",
    )


def _is_structured(item: ArchivedMessage) -> bool:
    return item.message.role == "tool" and content_of(item.message.text, by_tool=True) == "json"


def _coded(items: Sequence[ArchivedMessage], level: int) -> tuple[float, float]:
    """Bytes of the texts, and of the same under zstd, block by block."""
    texts = [as_text(block) for block, _ in blocks(items, DOCUMENT.block_tokens)] if items else []
    return float(sum(map(len, texts))), float(sum(len(Dictionary().compress(text, level)) for text in texts))


def _ratio(setting: str, pairs: list[tuple[float, float]], least: float, what: str) -> ClaimRow:
    some = [pair for pair in pairs if pair[0] and pair[1]]
    return ClaimRow(
        setting=setting,
        figure="original over compressed",
        unit="times",
        found=of_groups(some) if some else Missing("undefined", f"{what} has none"),
        claimed=Claimed(least=least),
        of=f"{len(some)} conversations",
    )


def _width(inputs: ClaimInputs) -> ClaimRow:
    """Bytes of a vector over bytes of its code: by construction."""
    ratios = [_or_missing(each, lambda each: 4.0 * each.width / each.bytes_each) for each in _quantised(inputs)]
    return ClaimRow(
        setting="vectors, product quantisation",
        figure="original over compressed",
        unit="times",
        found=of_seeds(ratios),
        claimed=Claimed(least=16.0),
        of=f"{len(ratios)} seeds",
    )


def _vectors(inputs: ClaimInputs, rerank: int, *, decides: bool) -> ClaimRow:
    """What is lost of exact search."""
    lost = [_or_missing(each, lambda each: 1 - dict(each.recall)[rerank]) for each in _quantised(inputs)]
    how = f", {rerank} ranked again by the exact vectors" if rerank else ""
    return ClaimRow(
        setting=f"vectors, product quantisation to a sixteenth{how}",
        figure="of the exact nearest 10 not found",
        unit="share",
        found=_no_less(of_seeds(lost)),
        claimed=Claimed(most=0.02),
        of=f"{len(lost)} seeds",
        decides=decides,
    )


def _no_less(found: Interval | Missing) -> Interval | Missing:
    """A loss is never below nothing."""
    if isinstance(found, Missing) or isinstance(found.low, Missing):
        return found
    return found._replace(low=max(0.0, found.low))


def _or_missing(found: Coded | Missing, of: Callable[[Coded], float]) -> Value:
    return found if isinstance(found, Missing) else of(found)


def _quantised(inputs: ClaimInputs) -> list[Coded | Missing]:
    """By seed, the embeddings of the acceptance scenario quantised, and searched with its probes' questions."""

    def make() -> list[Coded | Missing]:
        try:
            return [coded(pair, inputs.counter) for pair in _pairs(inputs)]
        except MissingExtra as error:
            return [Missing("unsupported", str(error))]

    return inputs.once("quantised", make)


def speed(inputs: ClaimInputs) -> Measurement:
    """C25. Bytes of contents a second of the wall clock, read from the disk, checked, decompressed."""
    rows = []
    for name in CODINGS:
        found = _archives(inputs, name)
        for what, values, decides in (
            (
                "read, checked and decompressed",
                [each.speed.decompress / 1e6 for each in found],
                name.startswith("zstd 9"),
            ),
            ("decompressed, nothing else (as zstd -b)", [each.speed.bare / 1e6 for each in found], False),
        ):
            rows.append(
                ClaimRow(
                    setting=f"the archive, {name}",
                    figure=what,
                    unit="MB/s",
                    found=of_seeds(values),
                    claimed=Claimed(least=500.0, above=True),
                    of=f"{len(found)} archives of 100K tokens",
                    decides=decides,
                    timed=True,
                )
            )
    return Measurement(
        tuple(rows),
        "The fastest of five reads of each archive; a raw dictionary that has the first blocks' text makes those "
        "nearly free, so the row without one decides.",
        "A faster machine.",
    )


CLAIMS = (
    Claim(
        "C23",
        "MEM-003: the archive compresses 100K tokens by more than 90 % with less than 2 % retrieval loss",
        "004 §7",
        f"lossless rows ({PLAIN}, dictionary, the bound) and lossy rows apart, by bytes and by tokens",
        compression,
    ),
    Claim(
        "C24",
        "Text 5:1, vectors 16:1 with less than 2 % loss, long documents 10:1, structured data 8:1",
        "004 §2.3",
        "each kind of data on recorded data",
        kinds,
    ),
    Claim("C25", "Decompression is faster than 500 MB/s", "004 §2.3", "MB/s beside the same frames in memory", speed),
)
