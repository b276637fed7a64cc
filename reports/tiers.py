"""Measurements of single memory tiers (Working, Archive, RAG), as tables and as JSON."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from ctxbench.harness.tier_bench.archive import PLAIN, ArchiveMeasurement, Coded, Corpus, Lossy, Size
from ctxbench.harness.tier_bench.overview import ARCHIVED, OverviewMeasurement
from ctxbench.harness.tier_bench.rag import RERANKED, RagComparison, RagMeasurement
from ctxbench.harness.tier_bench.working import WorkingMeasurement
from ctxbench.metrics.compression import ratio, saving
from ctxbench.metrics.probes import Latency
from ctxbench.metrics.statistics.intervals import Interval, ends_of
from ctxbench.metrics.value import Missing, Value

from .render import (
    Column,
    Table,
    about,
    count,
    exact,
    figure_of_few,
    percent,
    share_range,
    table_of,
    tokens,
    with_reach,
)
from .tier_actions import TierActions, tier_actions, tier_actions_json

Measurement = WorkingMeasurement | ArchiveMeasurement | RagMeasurement | OverviewMeasurement

# The hit rate of Working, and the recall@5 of RAG, that the design of the tiers promises.
_PROMISED_HIT_RATE, _PROMISED_RECALL = 0.9, 0.85
_PEER_NAMES = {"lru_k_document": "document's", "lru": "LRU", "w_tiny_lfu": "W-TinyLFU", "belady": "Belady"}


def tables(measurement: Measurement) -> list[Table]:
    """Return the tables of a measurement."""
    match measurement:
        case WorkingMeasurement():
            return _working(measurement)
        case ArchiveMeasurement():
            return _archive(measurement)
        case RagMeasurement():
            return _rag(measurement)
        case OverviewMeasurement():
            return _overview(measurement)


def as_json(measurement: Measurement) -> dict[str, Any]:
    """Return the exact figures. What is missing is an object with `why` and `detail`."""
    if isinstance(measurement, OverviewMeasurement):
        name, parts = measurement.strategy, ("working", "archive", "rag")
        actions = tier_actions_json({name: _overview_actions(measurement)})[name]
        return {part: exact(getattr(measurement, part)) for part in parts} | {"tiered": {"strategy": name, **actions}}
    figures: dict[str, Any] = exact(measurement)
    return figures


def _overview(overview: OverviewMeasurement) -> list[Table]:
    """Return a row for each tier: our figure, and beside it those of its peers on the same load."""
    working, archive, index = overview.working, overview.archive, overview.rag
    ours, *others = working.rows
    peers = [f"{_PEER_NAMES[row.policy]} {_mean(row.hit_rate)}" for row in others]
    coders = [f"{size.name} {size.bytes:,}" for size in archive.coders if not isinstance(size.bytes, Missing)]
    moves = _overview_actions(overview).moves.items()
    edges = [f"{source[0]}→{to[0]}".upper() + f" {edge['messages']:,}" for (source, to), edge in moves]
    hit_rate = figure_of_few("lru_k_hit_rate", overview.figures["lru_k_hit_rate"])
    beside = "exact search" if index.index == "exact" else f"{index.index} · exact search {_mean(index.exact)}"
    rows = (
        ("Working: hits", f"LRU-K {_mean(ours.hit_rate)}", " · ".join(peers)),
        ("Archive: bytes", f"{archive.archive:,}", " · ".join(coders)),
        ("RAG: recall@5", f"evidence {_mean(index.evidence)}", beside),
        ("tiered: hits", f"LRU-K {hit_rate}", " · ".join(edges)),
    )
    loads = f"{working.load} on {tokens(working.capacity)} tokens, {archive.bytes:,} bytes of {ARCHIVED}"
    notes = ("What does each tier add? ctxbench run standard -s none -s 'tiered(tiers=1)' … -s tiered (docs/tiers.md)",)
    return [Table(f"How good is each memory tier under load? ({loads})", ("tier", "ours", "beside it"), rows, notes)]


def _overview_actions(overview: OverviewMeasurement) -> TierActions:
    rates = {overview.strategy: overview.figures["working_hit_rate"]}
    return tier_actions(overview.events, rates)[overview.strategy]


def _mean(interval: Interval | Missing) -> str:
    return percent(interval if isinstance(interval, Missing) else interval.mean)


def _times(value: Value) -> str:
    return f"({value.why})" if isinstance(value, Missing) else f"{value:.2f}"


_POLICY_COLUMNS = (
    Column("policy", "policy"),
    Column("hit rate", "hit_rate", with_reach),
    Column("token hit rate", "token_hit_rate", with_reach),
    Column("evictions", "evictions", "{:,.0f}".format, spare=1),
    Column("loaded", "loaded", tokens, spare=2),
)


def _working(measured: WorkingMeasurement) -> list[Table]:
    """Return the policies with the bounds beneath, then how to read it."""
    bounds, promised = measured.bounds, percent(_PROMISED_HIT_RATE)
    notes, expected = [], bounds.popularity_known
    if measured.all_fits:
        notes.append("Everything fits: nothing is ever evicted, and all policies are alike.")
    if not isinstance(bounds.compulsory, Missing) and bounds.compulsory:
        notes.append(f"{percent(bounds.compulsory)} of the look-ups are the first of their item: no cache hits them.")
    if not isinstance(bounds.hit_rate, Missing) and bounds.hit_rate < _PROMISED_HIT_RATE:
        notes.append(f"A hit rate over {promised} is impossible here: no policy can exceed {percent(bounds.hit_rate)}.")
    elif not isinstance(expected, Missing) and expected < _PROMISED_HIT_RATE:
        notes.append(about("tiers_out_of_reach", promised=promised, expected=percent(expected)))
    sizes = f"{measured.look_ups:,.0f} look-ups and {tokens(measured.tokens)} tokens each"
    samples = count(measured.samples, measured.of)
    title = f"{measured.load}, cache of {measured.capacity:,} tokens: {samples}, {sizes}"
    table, rest = table_of(title, _POLICY_COLUMNS, measured.rows, notes), [""] * (len(_POLICY_COLUMNS) - 3)
    limit = "bound" if bounds.is_fluid else "bound (loose)"
    rows = [(limit, percent(bounds.hit_rate), percent(bounds.token_hit_rate), *rest)]
    if not isinstance(expected, Missing):
        rows.append(("popularity known", percent(expected), "", *rest))
    with_bounds = replace(table, rows=(*table.rows, *rows))
    return [with_bounds, Table("How to read it", (), (), (about("tiers_hit_rates"), about("tiers_bounds")))]


def _archive(measured: ArchiveMeasurement) -> list[Table]:
    """Return lossless and lossy compression, embeddings and speed."""
    first, *others = measured.lossless
    archive = Size("archive", measured.archive, alone=False)
    lossless = [_lossless(measured, first, archive), *(_lossless(measured, corpus) for corpus in others)]
    return [*lossless, _summaries(measured.summary), _coded(measured.vectors), _speed(measured)]


def _lossless(measured: ArchiveMeasurement, corpus: Corpus, *archive: Size) -> Table:
    coding, plain = measured.coding, next(size.bytes for size in corpus.sizes if size.name == PLAIN)
    assert isinstance(plain, int)

    def coded(size: Size) -> str:
        return "all files" if size in archive else "each block alone" if size.alone else "all at once"

    def of_bytes(show: Callable[[int], str]) -> Callable[[Size], str]:
        return lambda size: "" if isinstance(size.bytes, Missing) else show(size.bytes)

    columns = (
        Column("coder", lambda size: size.name + (" (computed)" if size.computed else "")),
        Column("coded", coded),
        Column("bytes", lambda size: f"({size.bytes.why})" if isinstance(size.bytes, Missing) else f"{size.bytes:,}"),
        Column("ratio", of_bytes(lambda size: _times(ratio(corpus.original, size)))),
        Column("saving", of_bytes(lambda size: percent(saving(corpus.original, size)))),
        Column(f"below {PLAIN}", of_bytes(lambda size: percent(saving(plain, size)))),
        Column("bytes/token", of_bytes(lambda size: f"{size / measured.tokens:.3f}" if measured.tokens else "–")),
    )
    sizes = {"tokens": measured.tokens, "bytes": corpus.original, "block": coding.block_tokens}
    counts = {"conversations": measured.conversations, "messages": measured.messages}
    words = {name: count(number, name.removesuffix("s")) for name, number in counts.items()}
    notes = [about("tiers_coders", **sizes, **words), about("tiers_computed")]
    notes += [about("tiers_archive", level=coding.level, dictionary=coding.dictionary)] * len(archive)
    return table_of(f"Lossless: {corpus.name}", columns, (*corpus.sizes, *archive), notes, names=2)


def _summaries(lossy: Lossy | Missing) -> Table:
    if isinstance(lossy, Missing):
        return Table("Not measured", (), (), (lossy.detail,))
    columns = (
        Column("what", lambda _: "extractive summaries"),
        Column("ratio (tokens)", lambda row: ratio(row.tokens, row.summary_tokens), _times),
        Column("saving (tokens)", lambda row: saving(row.tokens, row.summary_tokens), percent),
        Column("ratio (bytes)", lambda row: ratio(row.original, row.stored), _times),
        Column("saving (bytes)", lambda row: saving(row.original, row.stored), percent),
        Column("values kept", "values_kept", percent),
    )
    return table_of("Lossy: summaries", columns, [lossy], [about("tiers_summaries")])


def _coded(coded: Coded | Missing) -> Table:
    if isinstance(coded, Missing):
        return Table("Not measured", (), (), (coded.detail,))
    columns = (
        Column("search", lambda row: f"re-ranking {row[0]}" if row[0] else "by the codes alone"),
        Column("bytes of a code", lambda _: f"{coded.bytes_each:,}"),
        Column("kept to re-rank", lambda row: f"{coded.kept_bytes_each:,}" if row[0] else "0"),
        Column("ratio (codes)", lambda _: _times(ratio(coded.width * 4, coded.bytes_each))),
        Column("recall@10", lambda row: percent(row[1])),
        Column("loss", lambda row: percent(1 - row[1])),
    )
    questions = count(coded.questions, "question")
    note = about("tiers_codes", vectors=coded.vectors, width=coded.width, questions=questions)
    return table_of("Lossy: embeddings, product quantisation", columns, coded.recall.items(), [note])


def _speed(measured: ArchiveMeasurement) -> Table:
    speed, gets = measured.speed, sorted(measured.speed.gets)
    rows = (
        (f"write, level {measured.coding.level}", f"{speed.write / 1e6:,.1f} MB/s"),
        ("read, check, decompress", f"{speed.decompress / 1e6:,.0f} MB/s"),
        ("decompress alone", f"{speed.bare / 1e6:,.0f} MB/s"),
        ("make messages", f"{speed.messages / 1e6:,.0f} MB/s"),
        ("one message, p50", f"{gets[len(gets) // 2] * 1e3:.2f} ms"),
        ("one message, p99", f"{gets[len(gets) * 99 // 100] * 1e3:.2f} ms"),
        ("one message, longest", f"{gets[-1] * 1e3:.2f} ms"),
        ("open", f"{speed.open * 1e3:.1f} ms"),
    )
    return Table("Speed", ("what", "figure"), rows, (about("tiers_speed"),))


def _rag(measured: RagMeasurement) -> list[Table]:
    """Return context recall of each combination of retrievers, by category, and what the tier took."""
    k, twice, built = measured.k, 2 * measured.k, measured.conversations

    def percentile(name: str, times: Latency | Missing) -> str:
        return "–" if isinstance(times, Missing) else f"{getattr(times, name):.2f} ms"

    retrievers = Column("retrievers", "name")
    columns = (
        retrievers,
        Column(f"@{k}", "recall", _mean),
        Column("95 % interval", "recall", share_range),
        Column(f"@{twice}", "recall_at_twice", _mean),
        Column("95 % interval ", "recall_at_twice", share_range, spare=3),
        *(
            Column(name, "milliseconds", partial(percentile, name), spare)
            for name, spare in zip(Latency._fields, (1, 0, 2), strict=True)
        ),
    )
    title = f"Recall of the evidence of {count(measured.probes, 'probe')} in {count(len(built), 'conversation')}"
    notes, intervals = [_fused(measured.fusion, k)], [ends_of(row.recall) for row in measured.ways]
    highs = [interval.high for interval in intervals if not isinstance(interval, Missing)]
    if k == 5 and highs and max(highs) < _PROMISED_RECALL:
        notes.append(
            f"The promised recall of more than {percent(_PROMISED_RECALL)} at 5 is reached by no combination here."
        )
    names = dict.fromkeys(name for row in measured.ways for name in row.categories)

    def of_category(name: str) -> Column:
        return Column(name, lambda row: row.categories[name], with_reach)

    passages = sum(tier.passages for tier in built)

    def each(seconds: float) -> str:
        return f"{seconds:.2f} s, {seconds / max(passages, 1) * 1000:.2f} ms each"

    took = (
        ("passages", f"{passages:,}"),
        ("added, words and entities", each(sum(tier.seconds for tier in built))),
        ("embedded and indexed", each(sum(tier.embedding for tier in built))),
        ("entities", f"{sum(tier.entities for tier in built):,}"),
        ("edges", f"{sum(tier.edges for tier in built):,}"),
    )
    how = about("tiers_recall", k=k, twice=twice), about("tiers_fusion", reranked=RERANKED)
    return [
        table_of(title, columns, measured.ways, notes),
        table_of(f"Recall@{k} by category of the probes", [retrievers, *map(of_category, names)], measured.ways),
        Table("Time and size of the index", ("figure", "all conversations"), took),
        Table("How to read it", (), (), how),
    ]


def _fused(best: RagComparison | None, k: int) -> str:
    """Return whether fusion beats the best single retriever, decided by the interval."""
    if best is None:
        return "One retriever alone: nothing is fused."
    ends = ends_of(best.difference)
    if isinstance(best.difference, Missing) or isinstance(ends, Missing):
        return f"One conversation cannot tell if fusion beats the best single retriever, {best.single}."
    word = "beats" if ends.low > 0 else "does worse than" if ends.high < 0 else "does not clearly differ from"
    mean, low, high = (f"{share * 100:+.1f}".replace("-", "−") for share in (best.difference.mean, *ends))
    return (
        f"The best fusion ({best.best}) {word} the best single retriever ({best.single}): {mean} points at "
        f"{k}, {low} to {high}, in pairs. It was chosen as the best of several on the same probes."
    )
