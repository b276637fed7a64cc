"""The Archive tier, as tables and as JSON. Lossless and lossy figures stand in tables of their own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from ..harness.archiving.rows import PLAIN, Archived, Coded, Corpus, Later, Lossy, Size, Speed
from ..metrics.compression import ratio, saving, smaller
from ..metrics.value import Missing, Value
from .render import Table
from .words import count, percent

ARCHIVE = "archive"


def tables(found: Archived) -> list[Table]:
    """Lossless, dictionaries, lossy, embeddings, speed."""
    whole, *others = found.lossless
    coding = found.coding
    made = [
        _lossless(found, whole, (Size(ARCHIVE, found.archive, alone=False),)),
        *(_lossless(found, each, ()) for each in others),
    ]
    made += [_later(each) for each in found.later] if not isinstance(found.later, Missing) else [_not(found.later)]
    made.append(_not(found.summary) if isinstance(found.summary, Missing) else _lossy(found.summary))
    made.append(_not(found.vectors) if isinstance(found.vectors, Missing) else _coded(found.vectors))
    made.append(_speed(found.speed, coding.level))
    return made


def _not(why: Missing) -> Table:
    return Table("Not measured", (), (), (why.detail,))


def _lossless(found: Archived, corpus: Corpus, more: Sequence[Size]) -> Table:
    plain = corpus.of(PLAIN)
    rows = []
    for size in (*corpus.sizes, *more):
        name = size.name + (" (computed)" if size.computed else "")
        together = "each block alone" if size.alone else "all at once"
        if size.name == ARCHIVE:
            together = "all files"
        if isinstance(size.bytes, Missing):
            rows.append((name, together, f"({size.bytes.why})", "", "", "", ""))
            continue
        each = f"{size.bytes / found.tokens:.3f}" if found.tokens else "(undefined)"
        rows.append(
            (
                name,
                together,
                f"{size.bytes:,}",
                _times(ratio(corpus.original, size.bytes)),
                percent(saving(corpus.original, size.bytes)),
                percent(smaller(plain, size.bytes)),
                each,
            )
        )
    notes = [
        f"{count(found.conversations, 'conversation')}, {count(found.messages, 'message')}, {found.tokens:,} tokens, "
        f"{corpus.original:,} bytes, in blocks of {found.coding.block_tokens:,} tokens. Every coder gets the same.",
        "A model's bytes are computed: what an arithmetic coder with it would take, learning as it goes. They bound "
        "the entropy from above. It sees no repeats longer than its order: on repetitive JSON zstd is below it.",
    ]
    if more:
        notes.append(
            "archive: blocks, tables of ids and tokens, dictionary and index, all counted. "
            f"Level {found.coding.level}, {found.coding.dictionary} dictionary. Lossless saves no tokens: what is read "
            "back is sent whole."
        )
    heads = ("coder", "coded", "bytes", "ratio", "saving", f"below {PLAIN}", "bytes/token")
    return Table(f"Lossless: {corpus.name}", heads, tuple(rows), tuple(notes), names=2)


def _later(found: Later) -> Table:
    rows = [(PLAIN, f"{found.plain:,}", "", percent(saving(found.original, found.plain)), "", "")]
    both = found.plain + found.plain_earlier
    for each in found.taught:
        every = each.bytes + each.dictionary + each.earlier
        rows.append(
            (
                f"{each.kind} dictionary" if each.kind != "none" else "no dictionary",
                f"{each.bytes:,}",
                f"{each.dictionary:,}",
                percent(saving(found.original, each.bytes)),
                percent(smaller(found.plain, each.bytes)),
                percent(smaller(both, every)),
            )
        )
    heads = ("coder", "later ones", "dictionary", "saving", f"below {PLAIN}", "with all, below")
    notes = (
        "The dictionary is made of the earlier half of the conversations and tested on the later half. "
        f"With all: later ones, dictionary, and the earlier ones (nearly nothing beside a raw dictionary, which is "
        f"their text), below {PLAIN} of both halves. Tables of ids are not in these.",
    )
    return Table(f"Dictionaries: {found.name}", heads, tuple(rows), notes)


def _lossy(found: Lossy) -> Table:
    row = (
        "extractive summaries",
        _times(ratio(found.tokens, found.summary_tokens)),
        percent(saving(found.tokens, found.summary_tokens)),
        _times(ratio(found.original, found.stored)),
        percent(saving(found.original, found.stored)),
        percent(found.values_kept),
    )
    heads = ("what", "ratio (tokens)", "saving (tokens)", "ratio (bytes)", "saving (bytes)", "values kept")
    note = (
        "Of the texts; bytes are compressed. The blocks are kept beside their summaries, and are not in these figures. "
        "Values kept: of the numbers, dates, names, identifiers and paths of a block, those in its summary."
    )
    return Table("Lossy: summaries", heads, (row,), (note,))


def _coded(found: Coded) -> Table:
    rows = tuple(
        (
            f"re-ranking {rerank}" if rerank else "by the codes alone",
            f"{found.bytes_each:,}",
            f"{found.kept_bytes_each:,}" if rerank else "0",
            _times(ratio(found.width * 4, found.bytes_each)),
            percent(recall),
            percent(1 - recall),
        )
        for rerank, recall in found.recall
    )
    heads = ("search", "bytes of a code", "kept to re-rank", "ratio (codes)", "recall@10", "loss")
    note = (
        f"{found.vectors:,} texts under the offline embedder ({found.width:,} coordinates), searched with "
        f"{count(found.questions, 'question')} of the probes. Recall: of the 10 nearest of an exact search. What is "
        "kept to re-rank is beside the codes."
    )
    return Table("Lossy: embeddings, product quantisation", heads, rows, (note,))


def _speed(found: Speed, level: int) -> Table:
    half, most, longest = found.get
    rows = (
        ("write, level " + str(level), f"{found.write / 1e6:,.1f} MB/s"),
        ("read, check, decompress", f"{found.decompress / 1e6:,.0f} MB/s"),
        ("decompress alone", f"{found.bare / 1e6:,.0f} MB/s"),
        ("make messages", f"{found.messages / 1e6:,.0f} MB/s"),
        ("one message, p50", f"{half * 1e3:.2f} ms"),
        ("one message, p99", f"{most * 1e3:.2f} ms"),
        ("one message, longest", f"{longest * 1e3:.2f} ms"),
        ("open", f"{found.open * 1e3:.1f} ms"),
    )
    note = (
        "On this machine, now: no two runs have the same times. Bytes are those of the blocks before compression. "
        "Blocks that the dictionary was made of decompress faster than any other."
    )
    return Table("Speed", ("what", "figure"), rows, (note,))


def _times(value: Value) -> str:
    return f"({value.why})" if isinstance(value, Missing) else f"{value:.2f}"


def as_json(found: Archived) -> dict[str, Any]:
    """Every figure. `speed` is what differs between two runs."""
    return asdict(found)
