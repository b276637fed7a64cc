"""`ctxbench bench-tier working`: cache policies on traces of accesses, beside their bounds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from ....scenarios.source import Problems
    from ...working import Load

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
    from ....reports.tiers_working import as_json, tables
    from ....scenarios.source import Problems
    from ....strategies.tiers.working.policies import parse
    from ...working import Bounds, Row, bounds, measured
    from ..progress import counting
    from ..say import say, say_what_was_passed_over
    from ..summary import print_json, print_tables

    recipes = [parse(text) for text in dict.fromkeys(policy or DEFAULT)]
    problems = Problems()
    loads = list(_loads(dict.fromkeys(trace or ["mem_002"]), seeds, seconds, problems))
    for problem in problems.found:
        say(f"left out: {problem}")
    say_what_was_passed_over(problems.ignored, problems.notes)
    sizes = list(dict.fromkeys(size or [SIZE]))
    rows: list[Row] = []
    found: list[Bounds] = []
    with counting(len(loads) * len(sizes) * len(recipes) * (1 + preload), "policies") as done:
        for load in loads:
            for each in sizes:
                rows += measured(load, each, recipes, preload, done)
                found.append(bounds(load, each))
    if json:
        print_json(as_json(loads, rows, found))
    else:
        print_tables(tables(loads, rows, found))


def _loads(names: Iterable[str], seeds: int, seconds: bool, problems: Problems) -> Iterator[Load]:
    """The traces that are meant; recordings together are one load."""
    from ....strategies.tiers.working.traces import TRACES
    from ...working import Load

    every = dict.fromkeys(each for name in names for each in (TRACES if name == "all" else [name]))
    for name in every:
        if name in TRACES:
            yield Load(name, [TRACES[name](seed) for seed in range(seeds)], "seed")
        else:
            yield _recorded(name, seconds, problems)


def _recorded(name: str, seconds: bool, problems: Problems) -> Load:
    from ....metrics.tokens import TokenCounter
    from ....scenarios.errors import RunError
    from ....scenarios.spec import nearest
    from ....strategies.tiers.working.recorded import recorded
    from ....strategies.tiers.working.traces import TRACES
    from ...inputs import Inputs
    from ...working import Load

    counter, before = TokenCounter(), len(problems.found)
    conversations = list(Inputs((name,)).open(problems).conversations())
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
