"""`ctxbench report`: a run as tables, and as files that people look at."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from .arguments import MODELS, RunArgument, chosen


def report(
    run: RunArgument = Path("runs"),
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FOLDER", help="Where the report goes.", show_default="RUN/report"),
    ] = None,
    model: Annotated[
        list[str] | None,
        typer.Option(
            help="Bill under this model, by its litellm name; repeat it. The frontier is that of the first.",
            show_default=", ".join(MODELS),
        ),
    ] = None,
    inspect: Annotated[
        list[str] | None,
        typer.Option(metavar="CONVERSATION", help="Have this one in the page's inspector; repeat it."),
    ] = None,
    markdown: Annotated[
        Path | None,
        typer.Option(
            "--markdown",
            "-m",
            help="Write the tables as Markdown to this file, and nothing else; - is standard output.",
        ),
    ] = None,
    by_conversation: Annotated[
        bool, typer.Option("--by-conversation", help="Print one row per conversation and strategy, and write nothing.")
    ] = False,
    print_only: Annotated[bool, typer.Option("--print-only", help="Print the tables, and write nothing.")] = False,
    by_kind: Annotated[bool, typer.Option("--by-kind", help="Show the probes by their kind as well.")] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the figures as JSON on standard output, and write nothing.")
    ] = False,
) -> None:
    """Print the tables of a run, and write its report: report.html, report.md, figures/ (SVG, PNG), tables/ (CSV).

    report.html is one file that needs nothing else: it can be opened from disk, sent, or kept by a CI.
    """
    from ...scenarios.errors import UserError
    from .arguments import conversation
    from .output import (
        conversation_tables,
        print_cells,
        print_run,
        print_tables,
        results_of,
        run_tables,
        write_markdown,
    )

    if as_json and markdown is not None:
        raise UserError("give --json or --markdown, not both")
    folder = chosen(run)
    if by_conversation and markdown is None:
        print_cells(folder, as_json)
    elif as_json:
        print_run(folder, as_json, by_kind)
    elif markdown is not None:
        results = results_of(folder, model or MODELS)
        write_markdown(conversation_tables(folder) if by_conversation else run_tables(results, by_kind), markdown)
    else:
        from ...reports.html.folder import write
        from ...reports.html.inspector import check

        results = results_of(folder, model or MODELS)
        named = [conversation(results.run, name) for name in inspect or ()]
        check(results.run, named)
        print_tables(run_tables(results, by_kind))
        if print_only:
            return
        page = write(results, out or folder / "report", named)
        typer.echo(f"\nreport: {shlex.quote(str(page))}")
