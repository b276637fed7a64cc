"""Cache policies on traces, as tables and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from ..harness.tier_bench.archive import PLAIN, ArchiveMeasurement, Coded, Corpus, Later, Lossy, Size, Speed
from ..harness.tier_bench.focus import BOUND, WHOLE, FocusRow
from ..harness.tier_bench.rag import RERANKED, Built, K, RagComparison, RagRow
from ..harness.tier_bench.working import Bounds, Load, PolicyRow
from ..metrics.compression import ratio, saving, smaller
from ..metrics.statistics.intervals import Interval
from ..metrics.value import Missing, Value
from .render import Table, count, percent, shares, tokens

HEADS = ("policy", "hit rate", "±", "token hit rate", "±", "evictions", "loaded", "preloaded")
WORKING_WANTED = 0.9
"""The hit rate that design document 004 asks for."""
HOW = (
    "Hit rate: of the look-ups, those of items that were held. Token hit rate: of their tokens. ±: the 95 % t-interval "
    "over the samples. Evictions, loaded (tokens of misses), preloaded (tokens that were predicted): a sample, on "
    "average.",
    "Bound: no policy that loads only what is asked for has more, whatever it knows; preload may. Popularity known: "
    "what to expect of a cache that knows how popular every item is, but not what comes next. Belady knows the future: "
    "it is optimal for items of one size, and no bound for tokens.",
)


def working_tables(loads: Sequence[Load], rows: Sequence[PolicyRow], found: Sequence[Bounds]) -> list[Table]:
    """One table a load and size, then how to read them."""
    made = [_table(load, bound, rows) for load in loads for bound in found if bound.load == load.name]
    return [*made, Table("How to read it", (), (), HOW)]


def _table(load: Load, bound: Bounds, rows: Sequence[PolicyRow]) -> Table:
    chosen = [row for row in rows if (row.load, row.size) == (bound.load, bound.size)]
    width = len(HEADS) - (not any(row.preload for row in chosen))
    cells = [_cells(row) for row in chosen]
    limit = "bound" if bound.is_fluid else "bound (loose)"
    cells.append((limit, percent(bound.hits), "", percent(bound.tokens), *[""] * 4))
    if not isinstance(bound.expected, Missing):
        cells.append(("popularity known", percent(bound.expected), *[""] * 6))
    each = f"{load.accesses:,.0f} look-ups and {tokens(load.tokens)} tokens each"
    title = f"{load.name}, cache of {bound.size:,} tokens: {count(len(load.samples), load.of)}, {each}"
    body = tuple(row[:width] for row in cells)
    return Table(title, HEADS[:width], body, tuple(_said(load, bound)), spare=("evictions", "loaded"))


def _cells(row: PolicyRow) -> tuple[str, ...]:
    name = f"{row.policy} + preload" if row.preload else row.policy
    preloaded = tokens(row.preloaded) if row.preload else "–"
    return (name, *_share(row.hits), *_share(row.tokens), f"{row.evictions:,.0f}", tokens(row.loaded), preloaded)


def _share(found: Interval | Missing) -> tuple[str, str]:
    if isinstance(found, Missing):
        return percent(found), ""
    reach = "–" if isinstance(found.high, Missing) else f"{(found.high - found.mean) * 100:.1f}"
    return percent(found.mean), reach


def _said(load: Load, bound: Bounds) -> list[str]:
    """Whether what the document asks for can be had at all."""
    said, wanted = [], percent(WORKING_WANTED)
    if load.largest <= bound.size:
        said.append("Everything fits: nothing is ever evicted, and no policy differs from another.")
    if not isinstance(bound.compulsory, Missing) and bound.compulsory:
        said.append(f"{percent(bound.compulsory)} of the look-ups are the first of their item: no cache hits them.")
    if not isinstance(bound.hits, Missing) and bound.hits < WORKING_WANTED:
        said.append(f"A hit rate over {wanted} is impossible here: no policy can have more than {percent(bound.hits)}.")
    elif not isinstance(bound.expected, Missing) and bound.expected < WORKING_WANTED:
        said.append(
            f"A hit rate over {wanted} is out of reach here without seeing the future: with all popularities known, "
            f"{percent(bound.expected)} can be expected."
        )
    return said


def working_json(loads: Sequence[Load], rows: Sequence[PolicyRow], found: Sequence[Bounds]) -> dict[str, Any]:
    """The same with exact figures."""
    return {
        "loads": [_load(each) for each in loads],
        "rows": [_row(each) for each in rows],
        "bounds": [_bound(each) for each in found],
    }


def _load(load: Load) -> dict[str, Any]:
    return {
        "load": load.name,
        "samples": len(load.samples),
        "of": load.of,
        "look_ups": load.accesses,
        "tokens": load.tokens,
    }


def _row(row: PolicyRow) -> dict[str, Any]:
    return {
        "load": row.load,
        "size": row.size,
        "policy": row.policy,
        "preload": row.preload,
        "hit_rate": _interval(row.hits),
        "token_hit_rate": _interval(row.tokens),
        "evictions": row.evictions,
        "loaded": row.loaded,
        "preloaded": row.preloaded,
    }


def _bound(bound: Bounds) -> dict[str, Any]:
    return {
        "load": bound.load,
        "size": bound.size,
        "hit_rate": _value(bound.hits),
        "token_hit_rate": _value(bound.tokens),
        "kind": "linear program" if bound.is_fluid else "PFOO",
        "compulsory": _value(bound.compulsory),
        "popularity_known": _value(bound.expected),
    }


def _interval(found: Interval | Missing) -> dict[str, float | None] | None:
    if isinstance(found, Missing):
        return None
    return {"mean": found.mean, "low": _value(found.low), "high": _value(found.high)}


def _value(value: Value) -> float | None:
    return None if isinstance(value, Missing) else float(value)


ARCHIVE = "archive"


def archive_tables(found: ArchiveMeasurement) -> list[Table]:
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


def _lossless(found: ArchiveMeasurement, corpus: Corpus, more: Sequence[Size]) -> Table:
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


def archive_json(found: ArchiveMeasurement) -> dict[str, Any]:
    """Every figure. `speed` is what differs between two runs."""
    return asdict(found)


WANTED = 0.85
"""The share of questions that design document 004 asks for among the first five."""


def rag_tables(rows: Sequence[RagRow], built: Sequence[Built], probes: int, best: RagComparison | None) -> list[Table]:
    """Evidence recall by way, by category, and what the tier took."""
    title = f"Evidence recall of {count(probes, 'probe')} in {count(len(built), 'conversation')}"
    heads = ("retrievers", f"@{K[0]}", "95 % interval", f"@{K[1]}", "95 % interval ", "p50", "p95", "p99")
    cells = tuple((row.way.name, *_intervals(row), *_latency(row)) for row in rows)
    found = [Table(title, heads, cells, (_verdict(best), *_asked_for(rows)), spare=("p50", "p99", "95 % interval "))]
    return [*found, _categories(rows), _took(built), Table("How to read it", (), (), (_HOW,))]


_HOW = (
    f"Recall: the share of a probe's evidence among the first {K[0]} and the first {K[1]} messages found, the mean of "
    "the probes; the bootstrap interval is over conversations. rrf: reciprocal rank fusion. weighted: scores, each "
    f"divided by its retriever's best, added. reranked: the first {RERANKED} by rrf, ordered by exact weighted scores. "
    "p50, p95, p99: a search in one conversation, the embedding of the question with it. `vector` is as good as its "
    "embedder: `offline` compares words, and between texts that share none its cosines are noise around 0."
)


def _intervals(row: RagRow) -> tuple[str, ...]:
    return tuple(text for each in row.recalls for text in (_mean(each), _between(each)))


def _mean(found: Interval | Missing) -> str:
    return percent(found if isinstance(found, Missing) else found.mean)


def _between(found: Interval | Missing) -> str:
    if isinstance(found, Missing) or isinstance(found.low, Missing) or isinstance(found.high, Missing):
        return "–"
    return shares(found.low, found.high)


def _latency(row: RagRow) -> tuple[str, ...]:
    return ("–",) * 3 if isinstance(row.latency, Missing) else tuple(f"{each:.2f} ms" for each in row.latency)


def _verdict(best: RagComparison | None) -> str:
    """Whether fusion beats the best single retriever, decided by the interval."""
    if best is None:
        return "One retriever alone: nothing is fused."
    found = best.difference
    if isinstance(found, Missing) or isinstance(found.low, Missing) or isinstance(found.high, Missing):
        return f"Whether fusion beats the best single retriever, {best.single}, cannot be told from one conversation."
    mean, low, high = found.mean, found.low, found.high
    word = "beats" if low > 0 else "does worse than" if high < 0 else "is not told apart from"
    return (
        f"The best fusion ({best.fusion}) {word} the best single retriever ({best.single}): {_points(mean)} points at "
        f"{K[0]}, {_points(low)} to {_points(high)}, in pairs. It is the best of several, seen on the same probes."
    )


def _points(share: float) -> str:
    return f"{share * 100:+.1f}".replace("-", "−")


def _asked_for(rows: Sequence[RagRow]) -> list[str]:
    """Whether what the document asks for is reached."""
    found = [row.recalls[0] for row in rows]
    highs = [each.high for each in found if not isinstance(each, Missing) and not isinstance(each.high, Missing)]
    if not highs or max(highs) >= WANTED:
        return []
    return [f"Design document 004 asks for more than {percent(WANTED)} at 5: no way reaches that here."]


def _categories(rows: Sequence[RagRow]) -> Table:
    names = list(dict.fromkeys(name for row in rows for name in row.categories))
    cells = tuple((row.way.name, *(percent(row.categories[name]) for name in names)) for row in rows)
    return Table(f"Evidence recall@{K[0]} by category", ("retrievers", *names), cells)


def _took(built: Sequence[Built]) -> Table:
    passages = sum(each.passages for each in built)
    adding, embedding = sum(each.seconds for each in built), sum(each.embedding for each in built)
    cells = (
        ("passages", f"{passages:,}"),
        ("added, words and entities", _each(adding, passages)),
        ("embedded and indexed", _each(embedding, passages)),
        ("entities", f"{sum(each.entities for each in built):,}"),
        ("edges", f"{sum(each.edges for each in built):,}"),
    )
    return Table("What the tiers took and hold", ("figure", "all conversations"), cells)


def _each(seconds: float, passages: int) -> str:
    return f"{seconds:.2f} s, {seconds / max(passages, 1) * 1000:.2f} ms each"


def rag_json(rows: Sequence[RagRow], built: Sequence[Built], probes: int, best: RagComparison | None) -> dict[str, Any]:
    """The same with exact figures."""
    return {
        "probes": probes,
        "ways": [
            {
                "retrievers": list(row.way.by),
                "name": row.way.name,
                "recall": {f"@{k}": _plain(each) for k, each in zip(K, row.recalls, strict=True)},
                "categories": {name: _value_tiers_rag(value) for name, value in row.categories.items()},
                "milliseconds": None if isinstance(row.latency, Missing) else row.latency._asdict(),
            }
            for row in rows
        ],
        "fusion": None
        if best is None
        else {"best": best.fusion, "single": best.single, "difference": _plain(best.difference)},
        "conversations": [each._asdict() for each in built],
    }


def _plain(found: Interval | Missing) -> dict[str, float | None]:
    three = (found,) * 3 if isinstance(found, Missing) else found
    return {name: _value_tiers_rag(value) for name, value in zip(Interval._fields, three, strict=True)}


def _value_tiers_rag(value: Value) -> float | None:
    return None if isinstance(value, Missing) else float(value)


FOCUS_HEADS = ("way", "tokens", "kept", "over", "refused", "recall", "±", "answer", "grounded", "p50", "p99")
FOCUS_HOW = (
    "Tokens: of all requests. Kept: of the tokens of the whole history. Over: requests that take more than the limit, "
    "tool schemas and priming counted. Refused: calls at which the way says that its limit cannot be kept.",
    "Recall: of the messages that a probe rests on, the share that is sent as it was said when the probe is asked; ±: "
    "half the 95 % interval over conversations. Answer: probes of which an accepted answer stands in what is sent, "
    "also in what the way wrote, of those whose answer was said word for word. Grounded: of the values that the "
    "recorded model used next, the share still there. p50, p99: what deciding took at a call, on the clock, without "
    "models.",
    "Bound: the most evidence that fits within the limit beside system messages, tool schemas and the question.",
)
Failed = Sequence[tuple[str, str, str]]
"""(conversation, way, why)"""


def focus_tables(rows: Sequence[FocusRow], limit: int, conversations: int, failed: Failed = ()) -> list[Table]:
    """A row a way, then how to read it."""
    calls = next((row.calls for row in rows if row.way == WHOLE), 0)
    probes = next((row.probes for row in rows if row.way == WHOLE), 0)
    title = f"Focus, {limit:,} tokens: {count(conversations, 'conversation')}, {count(calls, 'call')}, "
    made = [
        Table(
            title + count(probes, "probe"),
            FOCUS_HEADS,
            tuple(map(_cells_tiers_focus, rows)),
            (),
            spare=("±", "p50", "tokens"),
        ),
        Table("How to read it", (), (), FOCUS_HOW),
    ]
    if failed:
        note = "These conversations are in no figure."
        made.append(Table("Failed", ("conversation", "way", "why"), tuple(failed), (note,), prose=True))
    return made


def _cells_tiers_focus(row: FocusRow) -> tuple[str, ...]:
    recall, reach = _interval_tiers_focus(row.recall)
    if row.way == BOUND:
        return (row.way, "", "", "", "", recall, reach, "", "", "", "")
    times = ("", "") if isinstance(row.micros, Missing) else (_micros(row.micros.p50), _micros(row.micros.p99))
    said = (tokens(row.tokens), percent(row.share), f"{row.over:,}", f"{row.refused:,}")
    return (row.way, *said, recall, reach, _interval_tiers_focus(row.reachable)[0], percent(row.grounded), *times)


def _interval_tiers_focus(found: Interval | Missing) -> tuple[str, str]:
    if isinstance(found, Missing):
        return percent(found), "–"
    if isinstance(found.low, Missing) or isinstance(found.high, Missing):
        return percent(found.mean), "–"
    return percent(found.mean), f"{(found.high - found.low) * 50:.1f}"


def _micros(value: float) -> str:
    return f"{value:,.0f} µs"


def focus_json(rows: Sequence[FocusRow], limit: int, conversations: int, failed: Failed = ()) -> dict[str, Any]:
    """The same with exact figures."""
    return {
        "limit": limit,
        "conversations": conversations,
        "rows": [
            {
                **{name: getattr(row, name) for name in ("way", "calls", "tokens", "over", "refused", "probes")},
                **{name: _plain_tiers_focus(getattr(row, name)) for name in ("share", "grounded")},
                **{name: _three(getattr(row, name)) for name in ("recall", "reachable")},
                "micros": None if isinstance(row.micros, Missing) else row.micros._asdict(),
            }
            for row in rows
        ],
        "failed": [dict(zip(("conversation", "way", "why"), each, strict=True)) for each in failed],
    }


def _three(found: Interval | Missing) -> list[float | dict[str, str]]:
    return [_plain_tiers_focus(each) for each in ((found,) * 3 if isinstance(found, Missing) else found)]


def _plain_tiers_focus(value: Value) -> float | dict[str, str]:
    return {"missing": value.why, "detail": value.detail} if isinstance(value, Missing) else value
