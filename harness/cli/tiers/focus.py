"""`ctxbench bench-tier focus`: what the Focus tier's truncations keep, beside other strategies and a bound."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer


class Truncation(StrEnum):
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
        list[Truncation] | None,
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
    from ....metrics.tokens import TokenCounter
    from ....reports.tiers_focus import as_json as exact
    from ....reports.tiers_focus import tables
    from ....scenarios.errors import RunError
    from ....scenarios.source import Problems
    from ....strategies.chain import parse, spec
    from ...focusing import measured, rows
    from ...inputs import Inputs
    from ...models import OFFLINE
    from ..progress import counting
    from ..say import say, say_what_was_passed_over
    from ..summary import print_json, print_tables

    texts = [f"focus(limit={limit}, truncation='{each}')" for each in dict.fromkeys(truncation or Truncation)]
    texts += strategy if strategy is not None else [peer.format(limit=limit) for peer in PEERS]
    made = [parse(text) for text in texts]
    problems = Problems()
    conversations = list(Inputs(tuple(recordings or ("standard",))).open(problems).conversations())
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
        print_tables(tables(rows(cells), limit, len(conversations), failed))
    if problems.found:
        raise typer.Exit(2)
