"""`ctxbench quality`: what a small local model answers under each strategy, from replies that come with ctxbench."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .paste import command, same_command
from .say import say

if TYPE_CHECKING:
    from ...reports.answering import Answers
    from ...reports.render import Table


def quality(
    out: Annotated[Path, typer.Option("--out", "-o", help="The run folder.")] = Path("runs/quality"),
    record: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Ask the model itself what has no reply yet, and write the replies to this file: `make record`. Needs "
            "the weights of `make local-model`; a recording that was stopped goes on.",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the figures as JSON on standard output.")] = False,
) -> None:
    """Have the scenario `quality` answered and graded by a small model, from replies that were recorded with it.

    No key, no weights and no network: the replies come with ctxbench. The answers are graded by the rules too, and are
    kept in a run folder like any other's.
    """
    from ...reports.answering import answers_of
    from ...reports.answers import all_json, run_tables
    from ...scenarios.errors import Stopped
    from ..answering.quality import conversations, replayed
    from ..answering.quality import record as recorded
    from ..loading import load
    from .progress import counting
    from .summary import print_json, print_tables

    try:
        with redirect_stdout(sys.stderr), counting(conversations(), "conversations") as done:
            replies = replayed(out, done) if record is None else recorded(record, out, done)
    except (Stopped, KeyboardInterrupt):
        say(f"stopped; what is finished is kept. To go on: {same_command()}")
        raise
    found = answers_of(load(out))
    if as_json:
        print_json(all_json(found))
    elif found is not None:
        print_tables([*run_tables(found), *_of_itself(found)])
        typer.echo(f"\nresults: {out}/   ({command('report', out)})")
    if not replies.are_whole:
        say(replies.in_words())
    elif record is not None:
        say(f"written: {record}: {len(replies.asked):,} replies")


def _of_itself(found: Answers) -> Iterator[Table]:
    """What is to be known of a model that grades its own answers."""
    from ...reports.render import Table
    from ..models.weights import NAME

    for (answerer, grader), notes in found.notes.items():
        if answerer == NAME and NAME in grader:
            yield Table("Of the model's own grades", (), (), notes)
