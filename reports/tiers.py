"""Measurements of single memory tiers (Working, Archive, RAG, Focus), as tables and as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from ctxbench.harness.tier_bench.archive import PLAIN, ArchiveMeasurement, Coded, Corpus, Lossy, Size, Speed
from ctxbench.harness.tier_bench.focus import BOUND, WHOLE, FocusRow
from ctxbench.harness.tier_bench.overview import ARCHIVED, Overview
from ctxbench.harness.tier_bench.rag import RERANKED, Built, IndexRecall, K, RagComparison, RagRow
from ctxbench.harness.tier_bench.working import Bounds, Load, PolicyRow
from ctxbench.metrics.compression import ratio, saving
from ctxbench.metrics.statistics.intervals import Interval
from ctxbench.metrics.value import Missing, Value

from .render import REACH, Table, count, figure_of_few, number, percent, shares, tokens, with_reach
from .tier_actions import TierActions, tier_actions, tier_actions_json

_POLICY_HEADS = ("policy", "hit rate", "±", "token hit rate", "±", "evictions", "loaded", "preloaded")
# The hit rate of Working, and the recall@5 of RAG, that the design of the tiers promises.
_PROMISED_HIT_RATE, _PROMISED_RECALL = 0.9, 0.85
_WORKING_HOW = (
    "Hit rate: the share of look-ups of items in the cache; token hit rate: of their tokens. ± is half the 95 % "
    "t-interval over the samples; evictions, loaded and preloaded tokens are means of a sample.",
    "Bound: no policy without preload has more. Popularity known: what to expect of a cache that knows how popular "
    "every item is; belady knows the future, is optimal for items of one size, and no bound for tokens.",
)
_ARCHIVE = "archive"
_PEER_NAMES = {
    "lru_k_document": "document's",
    "lru": "LRU",
    "w_tiny_lfu": "W-TinyLFU",
    "belady": "Belady",
}
_RAG_HOW = (
    f"Recall: the share of a probe's evidence among the first {K[0]} or {K[1]} messages found, with intervals over "
    "conversations. p50, p95 and p99: time of a search in one conversation with the embedding of the question.",
    "rrf: reciprocal rank fusion; weighted: scores divided by their retriever's best, added; reranked: the first "
    f"{RERANKED} by rrf, ordered by exact scores. `vector` is as good as its embedder: `offline` compares words.",
)
_FOCUS_HEADS = (
    *("strategy", "tokens", "of the history", "over the limit", "over budget", "context recall", "±"),
    *("answer in context", "grounding recall", "latency p50", "latency p99"),
)
_FOCUS_COUNTS = ("strategy", "calls", "tokens", "over", "over_budget", "probes")
_FOCUS_HOW = (
    "Over the limit: requests larger than the limit, with tool schemas; over budget: calls where the strategy says "
    "that its limit cannot be kept. ± is half the 95 % interval over independent units.",
    "Bound: the most evidence that fits within the limit beside system messages, tool schemas and the question.",
)


def overview_table(overview: Overview) -> Table:
    """Return a row for each tier: our figure, and beside it those of its peers on the same load."""
    ours, *others = overview.policies
    peers = [(_PEER_NAMES[row.policy], _mean(row.hits)) for row in others]
    coders = [(size.name, f"{size.bytes:,}") for size in overview.coders if not isinstance(size.bytes, Missing)]
    moves = _overview_actions(overview).moves
    edges = [(f"{source[0]}→{to[0]}".upper(), f"{edge.messages:,}") for (source, to), edge in moves.items()]
    hit_rate = figure_of_few("lru_k_hit_rate", overview.figures["lru_k_hit_rate"])
    rows = (
        ("Working: hits", f"LRU-K {_mean(ours.hits)}", _beside(peers)),
        ("Archive: bytes", f"{overview.archive:,}", _beside(coders)),
        ("RAG: recall@5", *_index_cells(overview.index)),
        ("tiered: hits", f"LRU-K {hit_rate}", _beside(edges)),
    )
    loads = f"{overview.load.name} on {tokens(ours.size)} tokens, {overview.archived:,} bytes of {ARCHIVED}"
    title = f"How good is each memory tier under load? ({loads})"
    return Table(title, ("tier", "ours", "beside it"), rows)


def _overview_actions(overview: Overview) -> TierActions:
    rates = {overview.strategy: overview.figures["working_hit_rate"]}
    return tier_actions(overview.events, rates)[overview.strategy]


def _index_cells(index: IndexRecall) -> tuple[str, str]:
    if index.kind == "exact":
        return f"evidence {_mean(index.exact)}", "exact search"
    evidence = f"evidence {_mean(index.evidence)}, by exact search {_mean(index.exact)}"
    return f"{index.kind} {_mean(index.nearest)}", f"of the exact five · {evidence}"


def overview_json(overview: Overview) -> dict[str, Any]:
    """Return the exact figures."""
    index, strategy = overview.index, overview.strategy
    return {
        "working": working_json([overview.load], overview.policies, [overview.bound]),
        "archive": {
            "bytes": overview.archived,
            "archive": overview.archive,
            "coders": [asdict(size) for size in overview.coders],
        },
        "rag": {
            "index": index.kind,
            **{name: _plain(getattr(index, name)) for name in ("nearest", "evidence", "exact")},
        },
        "tiered": {"strategy": strategy, **tier_actions_json({strategy: _overview_actions(overview)})[strategy]},
    }


def _beside(figures: Sequence[tuple[str, str]]) -> str:
    return " · ".join(f"{name} {shown}" for name, shown in figures)


def working_tables(loads: Sequence[Load], rows: Sequence[PolicyRow], bounds: Sequence[Bounds]) -> list[Table]:
    """Return one table for each load and size, then how to read them."""
    shown = [_table(load, bound, rows) for load in loads for bound in bounds if bound.load == load.name]
    return [*shown, Table("How to read it", (), (), _WORKING_HOW)]


def _table(load: Load, bound: Bounds, rows: Sequence[PolicyRow]) -> Table:
    chosen = [row for row in rows if (row.load, row.size) == (bound.load, bound.size)]
    width = len(_POLICY_HEADS) - (not any(row.preload for row in chosen))
    cells = [_cells(row) for row in chosen]
    limit = "bound" if bound.is_fluid else "bound (loose)"
    cells.append((limit, percent(bound.hits), "", percent(bound.tokens), *[""] * 4))
    if not isinstance(bound.expected, Missing):
        cells.append(("popularity known", percent(bound.expected), *[""] * 6))
    sizes = f"{load.accesses:,.0f} look-ups and {tokens(load.tokens)} tokens each"
    title = f"{load.name}, cache of {bound.size:,} tokens: {count(len(load.samples), load.of)}, {sizes}"
    body = tuple(row[:width] for row in cells)
    return Table(title, _POLICY_HEADS[:width], body, tuple(_working_notes(load, bound)), spare=("evictions", "loaded"))


def _cells(row: PolicyRow) -> tuple[str, ...]:
    name = f"{row.policy} + preload" if row.preload else row.policy
    preloaded = tokens(row.preloaded) if row.preload else "–"
    return (name, *_share(row.hits), *_share(row.tokens), f"{row.evictions:,.0f}", tokens(row.loaded), preloaded)


def _share(interval: Interval | Missing) -> tuple[str, str]:
    if isinstance(interval, Missing):
        return percent(interval), ""
    reach = "–" if isinstance(interval.high, Missing) else f"{(interval.high - interval.mean) * 100:.1f}"
    return percent(interval.mean), reach


def _working_notes(load: Load, bound: Bounds) -> list[str]:
    """Return whether the promised hit rate is possible at all."""
    notes, promised = [], percent(_PROMISED_HIT_RATE)
    if load.largest <= bound.size:
        notes.append("Everything fits: nothing is ever evicted, and all policies are alike.")
    if not isinstance(bound.compulsory, Missing) and bound.compulsory:
        notes.append(f"{percent(bound.compulsory)} of the look-ups are the first of their item: no cache hits them.")
    if not isinstance(bound.hits, Missing) and bound.hits < _PROMISED_HIT_RATE:
        notes.append(f"A hit rate over {promised} is impossible here: no policy can exceed {percent(bound.hits)}.")
    elif not isinstance(bound.expected, Missing) and bound.expected < _PROMISED_HIT_RATE:
        notes.append(
            f"A hit rate over {promised} is out of reach here without seeing the future: with all popularities known, "
            f"{percent(bound.expected)} can be expected."
        )
    return notes


_LOADS = {"load": "name", "of": "of", "look_ups": "accesses", "tokens": "tokens"}
_POLICIES = {
    **{name: name for name in ("load", "size", "policy", "preload")},
    "hit_rate": "hits",
    "token_hit_rate": "tokens",
    **{name: name for name in ("evictions", "loaded", "preloaded")},
}
_BOUNDS = {
    "load": "load",
    "size": "size",
    "hit_rate": "hits",
    "token_hit_rate": "tokens",
    "compulsory": "compulsory",
    "popularity_known": "expected",
}
"""Attribute of each key of the JSON."""


def working_json(loads: Sequence[Load], rows: Sequence[PolicyRow], bounds: Sequence[Bounds]) -> dict[str, Any]:
    """Return the exact figures."""
    kinds = ("PFOO", "linear program")
    return {
        "loads": [{**_keyed(item, _LOADS), "samples": len(item.samples)} for item in loads],
        "rows": [_keyed(item, _POLICIES) for item in rows],
        "bounds": [{**_keyed(item, _BOUNDS), "kind": kinds[item.is_fluid]} for item in bounds],
    }


def _keyed(item: object, attributes: Mapping[str, str]) -> dict[str, Any]:
    """Return attributes by key: an interval as its three figures, what is missing as null."""
    values = {key: getattr(item, attribute) for key, attribute in attributes.items()}
    return {
        key: None if isinstance(value, Missing) else _plain(value) if isinstance(value, Interval) else value
        for key, value in values.items()
    }


def archive_tables(measured: ArchiveMeasurement) -> list[Table]:
    """Return lossless and lossy compression, dictionaries, embeddings and speed."""
    whole, *others = measured.lossless
    coding = measured.coding
    shown = [
        _lossless(measured, whole, (Size(_ARCHIVE, measured.archive, alone=False),)),
        *(_lossless(measured, corpus, ()) for corpus in others),
    ]
    shown.append(_not(measured.summary) if isinstance(measured.summary, Missing) else _lossy(measured.summary))
    shown.append(_not(measured.vectors) if isinstance(measured.vectors, Missing) else _coded(measured.vectors))
    shown.append(_speed(measured.speed, coding.level))
    return shown


def _not(why: Missing) -> Table:
    return Table("Not measured", (), (), (why.detail,))


def _lossless(measured: ArchiveMeasurement, corpus: Corpus, more: Sequence[Size]) -> Table:
    plain = corpus.of(PLAIN)
    rows = []
    for size in (*corpus.sizes, *more):
        name = size.name + (" (computed)" if size.computed else "")
        together = "each block alone" if size.alone else "all at once"
        if size.name == _ARCHIVE:
            together = "all files"
        if isinstance(size.bytes, Missing):
            rows.append((name, together, f"({size.bytes.why})", "", "", "", ""))
            continue
        per_token = f"{size.bytes / measured.tokens:.3f}" if measured.tokens else "(undefined)"
        rows.append(
            (
                name,
                together,
                f"{size.bytes:,}",
                _times(ratio(corpus.original, size.bytes)),
                percent(saving(corpus.original, size.bytes)),
                percent(saving(plain, size.bytes)),
                per_token,
            )
        )
    notes = [
        f"{count(measured.conversations, 'conversation')}, {count(measured.messages, 'message')}, "
        f"{measured.tokens:,} tokens, "
        f"{corpus.original:,} bytes, in blocks of {measured.coding.block_tokens:,} tokens. Every coder gets the same.",
        "Computed: what an arithmetic coder with a learning model would take, an upper bound of the entropy. It sees "
        "no repeats longer than its order, so zstd can be below it on repetitive JSON.",
    ]
    if more:
        notes.append(
            f"archive counts blocks, tables, dictionary and index (level {measured.coding.level}, dictionary "
            f"{measured.coding.dictionary}). Lossless compression saves no tokens: what is read back is sent whole."
        )
    heads = ("coder", "coded", "bytes", "ratio", "saving", f"below {PLAIN}", "bytes/token")
    return Table(f"Lossless: {corpus.name}", heads, tuple(rows), tuple(notes), names=2)


def _lossy(lossy: Lossy) -> Table:
    row = (
        "extractive summaries",
        _times(ratio(lossy.tokens, lossy.summary_tokens)),
        percent(saving(lossy.tokens, lossy.summary_tokens)),
        _times(ratio(lossy.original, lossy.stored)),
        percent(saving(lossy.original, lossy.stored)),
        percent(lossy.values_kept),
    )
    heads = ("what", "ratio (tokens)", "saving (tokens)", "ratio (bytes)", "saving (bytes)", "values kept")
    note = (
        "Values kept: the share of the numbers, dates, names, identifiers and paths of a block that its summary has. "
        "The original blocks stay beside their summaries and are not counted; bytes are compressed."
    )
    return Table("Lossy: summaries", heads, (row,), (note,))


def _coded(coded: Coded) -> Table:
    rows = tuple(
        (
            f"re-ranking {rerank}" if rerank else "by the codes alone",
            f"{coded.bytes_each:,}",
            f"{coded.kept_bytes_each:,}" if rerank else "0",
            _times(ratio(coded.width * 4, coded.bytes_each)),
            percent(recall),
            percent(1 - recall),
        )
        for rerank, recall in coded.recall
    )
    heads = ("search", "bytes of a code", "kept to re-rank", "ratio (codes)", "recall@10", "loss")
    note = (
        f"{coded.vectors:,} texts under the offline embedder ({coded.width:,} coordinates), searched with "
        f"{count(coded.questions, 'question')} of the probes. Recall@10 is against an exact search; bytes kept to "
        "re-rank come on top of the codes."
    )
    return Table("Lossy: embeddings, product quantisation", heads, rows, (note,))


def _speed(speed: Speed, level: int) -> Table:
    half, most, longest = speed.get
    rows = (
        ("write, level " + str(level), f"{speed.write / 1e6:,.1f} MB/s"),
        ("read, check, decompress", f"{speed.decompress / 1e6:,.0f} MB/s"),
        ("decompress alone", f"{speed.bare / 1e6:,.0f} MB/s"),
        ("make messages", f"{speed.messages / 1e6:,.0f} MB/s"),
        ("one message, p50", f"{half * 1e3:.2f} ms"),
        ("one message, p99", f"{most * 1e3:.2f} ms"),
        ("one message, longest", f"{longest * 1e3:.2f} ms"),
        ("open", f"{speed.open * 1e3:.1f} ms"),
    )
    note = (
        "On this machine, now: no two runs have the same times. MB are bytes before compression; blocks that the "
        "dictionary comes from decompress fastest."
    )
    return Table("Speed", ("what", "figure"), rows, (note,))


def _times(value: Value) -> str:
    return f"({value.why})" if isinstance(value, Missing) else f"{value:.2f}"


def archive_json(measured: ArchiveMeasurement) -> dict[str, Any]:
    """Return every figure. Only `speed` differs between two runs."""
    return asdict(measured)


def rag_tables(rows: Sequence[RagRow], built: Sequence[Built], probes: int, best: RagComparison | None) -> list[Table]:
    """Return context recall of each combination of retrievers, by category, and what the tier took."""
    title = f"Recall of the evidence of {count(probes, 'probe')} in {count(len(built), 'conversation')}"
    heads = ("retrievers", f"@{K[0]}", "95 % interval", f"@{K[1]}", "95 % interval ", "p50", "p95", "p99")
    cells = tuple((row.way.name, *_intervals(row), *_latency(row)) for row in rows)
    main = Table(title, heads, cells, (_verdict(best), *_promise_notes(rows)), spare=("p50", "p99", "95 % interval "))
    return [main, _categories(rows), _took(built), Table("How to read it", (), (), _RAG_HOW)]


def _intervals(row: RagRow) -> tuple[str, ...]:
    return tuple(text for recall in row.recalls for text in (_mean(recall), _between(recall)))


def _mean(interval: Interval | Missing) -> str:
    return percent(interval if isinstance(interval, Missing) else interval.mean)


def _between(interval: Interval | Missing) -> str:
    if isinstance(interval, Missing) or isinstance(interval.low, Missing) or isinstance(interval.high, Missing):
        return "–"
    return shares(interval.low, interval.high)


def _latency(row: RagRow) -> tuple[str, ...]:
    return (
        ("–",) * 3 if isinstance(row.latency, Missing) else tuple(f"{percentile:.2f} ms" for percentile in row.latency)
    )


def _verdict(best: RagComparison | None) -> str:
    """Return whether fusion beats the best single retriever, decided by the interval."""
    if best is None:
        return "One retriever alone: nothing is fused."
    difference = best.difference
    if isinstance(difference, Missing) or isinstance(difference.low, Missing) or isinstance(difference.high, Missing):
        return f"One conversation cannot tell if fusion beats the best single retriever, {best.single}."
    mean, low, high = difference.mean, difference.low, difference.high
    word = "beats" if low > 0 else "does worse than" if high < 0 else "does not clearly differ from"
    return (
        f"The best fusion ({best.fusion}) {word} the best single retriever ({best.single}): {_points(mean)} points at "
        f"{K[0]}, {_points(low)} to {_points(high)}, in pairs. It was chosen as the best of several on the same probes."
    )


def _points(share: float) -> str:
    return f"{share * 100:+.1f}".replace("-", "−")


def _promise_notes(rows: Sequence[RagRow]) -> list[str]:
    """Return a note if the promised recall is out of reach."""
    recalls = [row.recalls[0] for row in rows]
    highs = [
        recall.high for recall in recalls if not isinstance(recall, Missing) and not isinstance(recall.high, Missing)
    ]
    if not highs or max(highs) >= _PROMISED_RECALL:
        return []
    return [f"The promised recall of more than {percent(_PROMISED_RECALL)} at 5 is reached by no combination here."]


def _categories(rows: Sequence[RagRow]) -> Table:
    names = list(dict.fromkeys(name for row in rows for name in row.categories))
    cells = tuple((row.way.name, *(with_reach(row.categories[name]) for name in names)) for row in rows)
    return Table(f"Recall@{K[0]} by category of the probes", ("retrievers", *names), cells, (REACH,))


def _took(built: Sequence[Built]) -> Table:
    passages = sum(tier.passages for tier in built)
    adding, embedding = sum(tier.seconds for tier in built), sum(tier.embedding for tier in built)
    cells = (
        ("passages", f"{passages:,}"),
        ("added, words and entities", _each(adding, passages)),
        ("embedded and indexed", _each(embedding, passages)),
        ("entities", f"{sum(tier.entities for tier in built):,}"),
        ("edges", f"{sum(tier.edges for tier in built):,}"),
    )
    return Table("Time and size of the index", ("figure", "all conversations"), cells)


def _each(seconds: float, passages: int) -> str:
    return f"{seconds:.2f} s, {seconds / max(passages, 1) * 1000:.2f} ms each"


def rag_json(rows: Sequence[RagRow], built: Sequence[Built], probes: int, best: RagComparison | None) -> dict[str, Any]:
    """Return the exact figures."""
    return {
        "probes": probes,
        "ways": [
            {
                "retrievers": list(row.way.by),
                "name": row.way.name,
                "recall": {f"@{k}": _plain(recall) for k, recall in zip(K, row.recalls, strict=True)},
                "categories": {name: _plain(recall) for name, recall in row.categories.items()},
                "milliseconds": None if isinstance(row.latency, Missing) else row.latency._asdict(),
            }
            for row in rows
        ],
        "fusion": None
        if best is None
        else {"best": best.fusion, "single": best.single, "difference": _plain(best.difference)},
        "conversations": [recall._asdict() for recall in built],
    }


def _plain(interval: Interval | Missing) -> dict[str, float | None]:
    three = (interval,) * 3 if isinstance(interval, Missing) else interval
    return {name: number(value) for name, value in zip(Interval._fields, three, strict=True)}


Failed = Sequence[tuple[str, str, str]]
"""(conversation, strategy, why)"""


def focus_tables(rows: Sequence[FocusRow], limit: int, conversations: int, failed: Failed = ()) -> list[Table]:
    """Return a row per strategy and for the bound, then how to read it."""
    calls = next((row.calls for row in rows if row.strategy == WHOLE), 0)
    probes = next((row.probes for row in rows if row.strategy == WHOLE), 0)
    title = f"Focus, {limit:,} tokens: {count(conversations, 'conversation')}, {count(calls, 'call')}, "
    shown = [
        Table(
            title + count(probes, "probe"),
            _FOCUS_HEADS,
            tuple(map(_focus_cells, rows)),
            (),
            spare=("±", "latency p50", "tokens"),
        ),
        Table("How to read it", (), (), _FOCUS_HOW),
    ]
    if failed:
        note = "These conversations count in no figure."
        shown.append(Table("Failed", ("conversation", "strategy", "why"), tuple(failed), (note,), prose=True))
    return shown


def _focus_cells(row: FocusRow) -> tuple[str, ...]:
    recall, reach = _mean_and_reach(row.context_recall)
    if row.strategy == BOUND:
        return (row.strategy, "", "", "", "", recall, reach, "", "", "", "")
    times = ("", "") if isinstance(row.latency, Missing) else (_micros(row.latency.p50), _micros(row.latency.p99))
    sizes = (tokens(row.tokens), percent(row.share), f"{row.over:,}", f"{row.over_budget:,}")
    return (row.strategy, *sizes, recall, reach, percent(row.answer_in_context), percent(row.grounding), *times)


def _mean_and_reach(interval: Interval | Missing) -> tuple[str, str]:
    if isinstance(interval, Missing):
        return percent(interval), "–"
    if isinstance(interval.low, Missing) or isinstance(interval.high, Missing):
        return percent(interval.mean), "–"
    return percent(interval.mean), f"{(interval.high - interval.low) * 50:.1f}"


def _micros(value: float) -> str:
    return f"{value:,.0f} µs"


def focus_json(rows: Sequence[FocusRow], limit: int, conversations: int, failed: Failed = ()) -> dict[str, Any]:
    """Return the exact figures."""
    return {
        "limit": limit,
        "conversations": conversations,
        "rows": [
            {
                **{name: getattr(row, name) for name in _FOCUS_COUNTS},
                **{name: _exact(getattr(row, name)) for name in ("share", "answer_in_context", "grounding")},
                "context_recall": _three(row.context_recall),
                "latency_us": None if isinstance(row.latency, Missing) else row.latency._asdict(),
            }
            for row in rows
        ],
        "failed": [dict(zip(("conversation", "strategy", "why"), failure, strict=True)) for failure in failed],
    }


def _three(interval: Interval | Missing) -> list[float | dict[str, str]]:
    return [_exact(value) for value in ((interval,) * 3 if isinstance(interval, Missing) else interval)]


def _exact(value: Value) -> float | dict[str, str]:
    return {"missing": value.why, "detail": value.detail} if isinstance(value, Missing) else value
