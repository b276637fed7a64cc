"""`ctxbench report` and `ctxbench show`: a run as tables and files to read, and the context of a single step."""

from __future__ import annotations

import re
import shlex
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from msgspec import Meta

from ctxbench.scenarios.errors import printable_line

from .arguments import MOST_OF_ANYTHING, Loss, RequestForm, run_folder
from .commands import PlainCommand
from .streams import command

if TYPE_CHECKING:
    from ctxbench.harness.folder.run import Run


def report(
    run: Path = Path("runs"),
    *,
    out: Path | None = None,
    model: list[str] | None = None,
    lose: Loss = 5.0,
    every: bool = False,
    inspect: list[str] | None = None,
    figures: bool = False,
    by: Literal["conversation", "kind"] | None = None,
    print_only: bool = False,
    no_text: bool = False,
    markdown: Path | None = None,
    as_json: bool = False,
) -> None:
    """Print the verdict on a run, and write its report: report.html, report.md, tables/ (CSV).

    report.html is one file that needs nothing else: open it from disk, send it, or store it in CI. With --json,
    --markdown, --by conversation or --print-only no report is written.

    Args:
        out (-o FOLDER): Where the report goes. [default: RUN/report]
        every (--all): Print all tables, not the verdict alone.
        inspect (CONVERSATION): Put this one into the page's inspector; repeat it.
        figures: Draw the charts as SVG and PNG too, for papers: figures/.
        by: conversation: a row per conversation and strategy instead. kind: all tables, with the probes by kind.
        print_only: Print, and write no report.
    """
    from ctxbench.api.names import find_conversation
    from ctxbench.harness.bill import check_priced
    from ctxbench.harness.folder.run import load
    from ctxbench.reports.results import by_conversation
    from ctxbench.reports.tables import conversation_table

    from .output import check_form, print_tables, put, results_of, run_json, run_tables, verdict_tables

    check_form(as_json, markdown)
    folder = run_folder(run)
    if by == "conversation":
        rows = by_conversation(load(folder), text=not no_text)
        put(lambda: rows, lambda: [conversation_table(rows)], as_json, markdown)
        return
    check_priced(model or ())
    results = results_of(folder, model or (), lose=lose, text=not no_text)
    all_tables = partial(run_tables, results, by == "kind")
    if as_json or markdown is not None:
        put(partial(run_json, results), all_tables, as_json, markdown)
        return
    from ctxbench.reports.html.folder import write
    from ctxbench.reports.html.inspector import check

    named = [find_conversation(results.run, name) for name in inspect or ()]
    check(results.run, named)
    print_tables(all_tables() if every or by else verdict_tables(results))
    if not print_only:
        typer.echo(f"report: {shlex.quote(str(write(results, out or folder / 'report', named, figures=figures)))}")


class Show(PlainCommand):
    """Command `show`, whose step may be a negative number: -1 is not an option."""

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:  # type: ignore[override]
        """Put a negative number, which can only be the last argument, behind all options."""
        numbers = [] if "--" in args else [arg for arg in args if re.fullmatch(r"-\d+", arg)]
        rest = [arg for arg in args if arg not in numbers]
        return super().parse_args(ctx, [*rest, "--", *numbers] if numbers else args)


def show(
    run: Path = Path("runs"),
    conversation: str | None = None,
    step: Annotated[int, Meta(ge=-MOST_OF_ANYTHING, le=MOST_OF_ANYTHING)] = -1,
    *,
    strategy: str | None = None,
    probe: str | None = None,
    full: bool = False,
    target: RequestForm | None = None,
    as_json: bool = False,
) -> None:
    """Show what was sent at a step, what was not, and what the strategy did.

    [bold]same[/bold]        sent, as at the step before, after the same messages
    [bold]again[/bold]       sent, as at the step before, but not after the same
    [bold]new[/bold]         sent, and not at the step before
    [bold]summarised[/bold]  not sent, but in a summary made up to this step
    [bold]dropped[/bold]     not sent, and in no summary

    [bold]replaced[/bold]    stands for a message of the history, with another text
    [bold]written[/bold]     is the strategy's own message
    ▮           has a cache breakpoint after it

    The tools that the strategy added and its actions follow.

    --probe shows the context of a question of the recording instead. A ◆ stands before each message that the answer
    rests on; what became of them follows the messages.

    Args:
        conversation (CONVERSATION): Its id, or its number in the list. Without it, list all.
        step (STEP): Number of the model call, from 0, or from the end: -1, -2 … [default: the last]
        probe (-p ID): Show the context of this question: its id, or its number.
        full: Show whole texts instead of one line each.
        target (--as): Print the body of the request that this API would take.
    """
    from ctxbench.api import names
    from ctxbench.harness.diff import probe_diff, step_diff
    from ctxbench.harness.export.requests import BODIES
    from ctxbench.harness.folder.run import load
    from ctxbench.harness.probes import CEILING, FLOOR
    from ctxbench.reports.diff import show_step

    from .output import console, print_json

    opened = load(run_folder(run))
    if conversation is None:
        _list(opened, as_json)
        return
    name = names.find_conversation(opened, conversation)
    if probe is None:
        at = step_diff(opened, name, names.find_strategy(opened, strategy), step)
    else:
        which = strategy if strategy in (FLOOR, CEILING) else names.find_strategy(opened, strategy)
        at = probe_diff(opened, name, which, names.find_probe(opened, name, probe))
    if target is not None:
        print_json(BODIES[target](at.request))
    elif as_json:
        print_json(at.as_json())
    else:
        show_step(console(), at, full)


def _list(run: Run, as_json: bool) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    from ctxbench.reports.render import WIDE

    from .output import print_json

    heads = ("conversation", "steps", "messages", "tokens")
    table = run.table("conversations")[["conversation", "calls", "messages", "tokens"]].set_axis(heads, axis=1)
    rows = [{"number": at, **row} for at, row in enumerate(table.to_dict("records"), start=1)]
    if as_json:
        print_json(rows)
        return
    shown = Table(box=None, pad_edge=False, header_style="dim")
    for head in ("", *heads):
        shown.add_column(head, justify="left" if head == "conversation" else "right", no_wrap=True)
    for row in rows:
        name = escape(printable_line(row["conversation"]))
        shown.add_row(str(row["number"]), name, *(f"{row[head]:,}" for head in heads[1:]))
    Console(width=WIDE, highlight=False).print(shown)  # a narrow terminal wraps a row: an id can be copied whole
    typer.echo(f"\n{command('show', run.folder)} NUMBER|CONVERSATION [STEP] [--strategy SPEC]")
