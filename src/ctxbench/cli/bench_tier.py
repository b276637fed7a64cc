"""`ctxbench lab bench-tier`: one memory tier alone, against its peers and its bound."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import redirect_stdout
from enum import StrEnum
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import typer

from . import completion
from .arguments import (
    MOST_TOKENS,
    EmbedderOption,
    EncodingOption,
    FormatOption,
    JsonOption,
    ModelOptions,
    StrictOption,
    flat,
)
from .replies import end, report_spending

if TYPE_CHECKING:
    from ctxbench.harness.tier_bench.working import Load
    from ctxbench.scenarios.source import Problems
    from ctxbench.strategies.tiers.rag import Retriever


RecordingsArgument = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="PATH|SCENARIO", help="Recordings (files, folders) or embedded scenarios.", show_default="standard"
    ),
]


class DictionaryKind(StrEnum):
    """Dictionary of the compression."""

    none = "none"
    trained = "trained"
    raw = "raw"


def archive(
    recordings: RecordingsArgument = None,
    level: Annotated[int, typer.Option("--level", "-l", min=1, max=22, help="Compression level of zstd.")] = 19,
    dictionary: Annotated[
        DictionaryKind,
        typer.Option(
            "--dictionary", "-d", help="raw: the text of earlier blocks. trained: the parts of it that zstd picks."
        ),
    ] = DictionaryKind.raw,
    form: FormatOption = None,
    encoding: EncodingOption = "o200k_base",
    as_json: JsonOption = False,
) -> None:
    """Archive recordings in a temporary folder, and measure sizes, losses and speed.

    Lossless: the archive against zstd, xz, brotli and the bound of a model. Lossy: extractive summaries and quantised
    embeddings.
    """
    from ctxbench.harness.engine.plan import RunInputs
    from ctxbench.harness.tier_bench.archive import archived
    from ctxbench.metrics.tokens import TokenCounter
    from ctxbench.reports.tiers import archive_json as exact
    from ctxbench.reports.tiers import archive_tables
    from ctxbench.scenarios.source import Problems
    from ctxbench.strategies.tiers.archive import Coding

    from .output import print_json, print_tables
    from .streams import report_ignored, say

    coding = Coding(level=level, dictionary=dictionary.value)
    counter = TokenCounter(encoding)
    problems = Problems()
    conversations = list(RunInputs(tuple(recordings or ("standard",)), form).open(problems).conversations())
    report_ignored(problems.ignored, problems.notes)
    for error in problems.errors:
        say(f"left out: {error}")
    measurement = archived(conversations, coding, counter, say)
    if as_json:
        print_json(exact(measurement))
    else:
        print_tables(archive_tables(measurement))


class TruncationName(StrEnum):
    """Way to cut a context that is over the limit."""

    tail_cutoff = "tail_cutoff"
    importance = "importance"
    dynamic_summary = "dynamic_summary"
    conversation_merge = "conversation_merge"


_LIMIT = 8192
# Other strategies under the same limit. They count neither tool schemas nor the tokens that start the reply.
_PEERS = (
    "window(max_tokens={limit}, reserve=0)",
    "summary(threshold=1000000, max_tokens={limit})",
    "retrieval(max_tokens={limit})",
)


@flat
def focus(
    recordings: RecordingsArgument = None,
    truncation: Annotated[
        list[TruncationName] | None,
        typer.Option("--truncation", help="Way to cut; repeat it.", show_default="all four"),
    ] = None,
    limit: Annotated[
        int, typer.Option("--limit", min=1, max=MOST_TOKENS, metavar="TOKENS", help="Token limit of a request.")
    ] = _LIMIT,
    strategy: Annotated[
        list[str] | None,
        typer.Option(
            *("--strategy", "-s"),
            metavar="SPEC",
            help="Strategy to compare with, as in `ctxbench run`; repeat it.",
            autocompletion=completion.strategies,
            show_default="window, summary and retrieval under the same limit",
        ),
    ] = None,
    encoding: EncodingOption = "o200k_base",
    strict: StrictOption = False,
    as_json: JsonOption = False,
    reach: ModelOptions = ModelOptions(),  # noqa: B008
) -> None:
    """Put recorded calls and probes through the Focus tier, and measure what it keeps within its limit.

    The whole history, which keeps everything, and the most that any way within the limit can keep are shown too. The
    exit code is 2 if a recording was left out, if a model that a strategy names gave it no usable reply, and with
    --strict if any reply is missing.
    """
    from ctxbench.harness.answers.tally import run_tallies, tallies_json
    from ctxbench.harness.engine.plan import RunInputs
    from ctxbench.harness.tier_bench.focus import bench, rows
    from ctxbench.reports.tiers import focus_json as exact
    from ctxbench.reports.tiers import focus_tables
    from ctxbench.scenarios.errors import RunError

    from .output import print_json, print_tables
    from .progress import watching
    from .run import report_problems

    specs = [f"focus(limit={limit}, truncation='{name}')" for name in dict.fromkeys(truncation or TruncationName)]
    specs += strategy if strategy is not None else [peer.format(limit=limit) for peer in _PEERS]
    inputs, settings = RunInputs(tuple(recordings or ("standard",))), reach.settings()
    with TemporaryDirectory() as folder:
        with redirect_stdout(sys.stderr), watching() as watcher:
            run = bench(inputs, specs, encoding, Path(folder) / "run", settings, watcher)
        report_problems(run.manifest)
        conversations = run.manifest.conversations
        if not conversations:
            raise RunError("there is no conversation to measure")
        failed = [(name, strategy, why) for strategy, names in run.failures.items() for name, why in names.items()]
        figures, tallies = rows(run, limit), run_tallies(run)
    if as_json:
        print_json({**exact(figures, limit, conversations, failed), "replies": tallies_json(tallies)})
    else:
        print_tables(focus_tables(figures, limit, conversations, failed))
    end(tallies, strict, settings, anew="a new --cassette", failed=bool(run.manifest.problems))


@flat
def rag(
    inputs: Annotated[
        list[str] | None,
        typer.Argument(help="Recordings with probes, or scenarios.", metavar="PATH|SCENARIO", show_default="standard"),
    ] = None,
    retriever: Annotated[
        str,
        typer.Option("--retriever", metavar="NAMES", help="Retrievers out of vector, bm25 and graph, with commas."),
    ] = "vector,bm25,graph",
    form: FormatOption = None,
    entities_only: Annotated[
        bool, typer.Option("--entities-only", help="Put only values, names and nouns into the graph, no content words.")
    ] = False,
    json: JsonOption = False,
    strict: StrictOption = False,
    embedder: EmbedderOption = "offline",
    reach: ModelOptions = ModelOptions(),  # noqa: B008
) -> None:
    """Search the RAG tier for the evidence of every probe, and measure recall and latency.

    Each retriever alone, every two and all three are tested: fused by ranks, by scores, and ranked again. For LoCoMo
    with its audited evidence use --format 'locomo(corrections="errors.json")'.
    """
    from ctxbench.harness.engine.plan import RunInputs
    from ctxbench.harness.models import Models
    from ctxbench.harness.tier_bench.rag import against, measured, rows, together, ways
    from ctxbench.reports.tiers import rag_json, rag_tables
    from ctxbench.scenarios.errors import RunError
    from ctxbench.scenarios.source import Problems

    from .output import print_json, print_tables
    from .progress import counting
    from .streams import report_ignored, say

    retrievers = _parse_retrievers(retriever)
    settings = reach.settings(embedder=embedder).checked()
    problems = Problems(strict=strict)
    conversations = list(RunInputs(tuple(inputs or ["standard"]), form).open(problems).conversations())
    for problem in problems.errors:
        say(f"left out: {problem}")
    report_ignored(problems.ignored, problems.notes)
    with counting(len(conversations), "conversations") as done:
        searches, built = together(measured(conversations, retrievers, Models(settings), done, words=not entities_only))
    if not searches:
        raise RunError("no conversation has a probe with evidence: there is nothing to look for")
    recalls = rows(searches, ways(retrievers))
    figures = (recalls, built, len(searches) // len(recalls), against(searches, recalls))
    if json:
        print_json({**rag_json(*figures), "problems": [str(problem) for problem in problems.errors]})
    else:
        print_tables(rag_tables(*figures))
    report_spending(settings)


def _parse_retrievers(text: str) -> tuple[Retriever, ...]:
    """Return the retrievers of a list with commas. Raises SpecError."""
    from ctxbench.scenarios.errors import SpecError
    from ctxbench.scenarios.spec import nearest
    from ctxbench.strategies.tiers.rag import RETRIEVERS

    names = list(dict.fromkeys(name.strip() for name in text.split(",")))
    for name in names:
        if name not in RETRIEVERS:
            close = nearest(name, dict.fromkeys(RETRIEVERS))
            raise SpecError(f"unknown retriever {name!r}{close}; there are {', '.join(RETRIEVERS)}")
    return tuple(name for name in RETRIEVERS if name in names)


_SIZE = 131_072
_POLICIES = (
    *("lru_k", "lru_k(correlated=100)", "lru_k_document", "hybrid", "segmented", "fifo", "lru", "lfu", "two_q", "arc"),
    *("s3_fifo", "sieve", "w_tiny_lfu", "belady", "belady_size"),
)


def working(
    trace: Annotated[
        list[str] | None,
        typer.Option(
            "--trace",
            metavar="NAME|PATH",
            help="A generated trace, `all` of them, or recordings (a file, a folder, a scenario); repeat it.",
            show_default="mem_002",
        ),
    ] = None,
    eviction: Annotated[
        list[str] | None,
        typer.Option(
            "--eviction",
            metavar="POLICY",
            help="A cache policy, e.g. lru_k(k=3, correlated=20); repeat it.",
            show_default="all, with their defaults",
        ),
    ] = None,
    size: Annotated[
        list[int] | None,
        typer.Option(
            "--size",
            min=1,
            max=MOST_TOKENS,
            metavar="TOKENS",
            help="Size of the cache; repeat it.",
            show_default=f"{_SIZE}",
        ),
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, max=1000, help="Samples of a generated trace.")] = 5,
    preload: Annotated[
        bool, typer.Option("--preload", help="Show each policy with predictive preload as well.")
    ] = False,
    seconds: Annotated[
        bool, typer.Option("--seconds", help="Measure the periods of lru_k in recorded seconds, not in accesses.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Put accesses to messages through cache policies of the Working tier, and compare their hit rates.

    Accesses of recordings are the earlier messages that tool calls, quotes and probes refer to. Each table has the
    bound that no policy can exceed.
    """
    from ctxbench.harness.tier_bench.working import Bounds, PolicyRow, bounds, measured
    from ctxbench.reports.tiers import working_json, working_tables
    from ctxbench.scenarios.source import Problems
    from ctxbench.strategies.tiers.working.policies import parse

    from .output import print_json, print_tables
    from .progress import counting
    from .streams import report_ignored, say

    recipes = [parse(text) for text in dict.fromkeys(eviction or _POLICIES)]
    problems = Problems()
    loads = list(_loads(dict.fromkeys(trace or ["mem_002"]), seeds, seconds, problems))
    for problem in problems.errors:
        say(f"left out: {problem}")
    report_ignored(problems.ignored, problems.notes)
    sizes = list(dict.fromkeys(size or [_SIZE]))
    rows: list[PolicyRow] = []
    limits: list[Bounds] = []
    with counting(len(loads) * len(sizes) * len(recipes) * (1 + preload), "policies") as done:
        for load in loads:
            for tokens in sizes:
                rows += measured(load, tokens, recipes, preload, done)
                limits.append(bounds(load, tokens))
    if json:
        print_json(working_json(loads, rows, limits))
    else:
        print_tables(working_tables(loads, rows, limits))


def _loads(names: Iterable[str], seeds: int, seconds: bool, problems: Problems) -> Iterator[Load]:
    """Yield the load of each trace; recordings together are one load."""
    from ctxbench.harness.tier_bench.working import Load
    from ctxbench.strategies.tiers.working.traces import TRACES

    every = dict.fromkeys(trace for name in names for trace in (TRACES if name == "all" else [name]))
    for name in every:
        if name in TRACES:
            yield Load(name, [TRACES[name](seed) for seed in range(seeds)], "seed")
        else:
            yield _recorded(name, seconds, problems)


def _recorded(name: str, seconds: bool, problems: Problems) -> Load:
    from ctxbench.harness.engine.plan import RunInputs
    from ctxbench.harness.tier_bench.working import Load
    from ctxbench.metrics.tokens import TokenCounter
    from ctxbench.scenarios.errors import RunError
    from ctxbench.scenarios.spec import nearest
    from ctxbench.strategies.tiers.working.traces import TRACES, recorded

    counter, before = TokenCounter(), len(problems.errors)
    conversations = list(RunInputs((name,)).open(problems).conversations())
    if not conversations and len(problems.errors) > before:
        remedy = "" if os.path.exists(name) else f"{nearest(name, TRACES)}; traces: {', '.join(TRACES)}"
        raise RunError(f"{problems.errors[before]}{remedy}")
    traces = [recorded(conversation, counter.message, seconds) for conversation in conversations]
    with_look_ups = [trace for trace in traces if trace.counted.any()]
    if not with_look_ups:
        raise RunError(f"{name}: no conversation goes back to an earlier message: there is nothing to look up")
    if len(with_look_ups) < len(traces):
        problems.notes.append(
            f"{name}: {len(traces) - len(with_look_ups)} of {len(traces)} conversations go back to nothing"
        )
    return Load(name, with_look_ups, "conversation")


class IndexName(StrEnum):
    """Index of the vectors of the RAG tier."""

    exact = "exact"
    hnsw = "hnsw"


def every(
    index: Annotated[
        IndexName, typer.Option("--index", help="Index of the RAG tier. hnsw needs the extra `hnswlib`.")
    ] = IndexName.exact,
    json: JsonOption = False,
) -> None:
    """Measure all tiers on loads that fill them, a line each, beside the best known alternatives.

    The loads are the acceptance scenarios of the tiers' design; `tiered` runs with the least sizes of that design.
    """
    from ctxbench.harness.tier_bench.overview import overview
    from ctxbench.reports.tiers import overview_json, overview_table

    from .output import print_json, print_tables
    from .progress import watching

    with TemporaryDirectory() as folder, redirect_stdout(sys.stderr), watching() as watcher:
        measurement = overview(Path(folder) / "run", watcher, index=index.value)
    if json:
        print_json(overview_json(measurement))
    else:
        print_tables([overview_table(measurement)])
