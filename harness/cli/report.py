"""`ctxbench report`: the tables of a run again, or as Markdown."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def report(
    run: Annotated[Path, typer.Argument(help="The run folder.", show_default="the newest under runs/")] = Path("runs"),
    markdown: Annotated[
        Path | None, typer.Option("--markdown", "-m", help="Write Markdown to this file; - is standard output.")
    ] = None,
    by_conversation: Annotated[
        bool, typer.Option("--by-conversation", help="One row per conversation and strategy instead.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the figures as JSON on standard output.")] = False,
) -> None:
    """Print the tables of a run, or write them as Markdown."""
    from ...reports.render import markdown as as_markdown
    from ...scenarios.errors import RunError, UserError
    from .runs import chosen
    from .summary import conversation_tables, print_cells, print_run, run_tables

    if as_json and markdown is not None:
        raise UserError("give --json or --markdown, not both")
    folder = chosen(run)
    if markdown is None:
        (print_cells if by_conversation else print_run)(folder, as_json)
        return
    text = as_markdown(conversation_tables(folder) if by_conversation else run_tables(folder))
    if str(markdown) == "-":
        typer.echo(text, nl=False)
        return
    try:
        markdown.write_text(text, encoding="utf-8")
    except OSError as error:
        raise RunError(f"{markdown}: cannot be written: {error.strerror or error}") from None
    typer.echo(f"written: {markdown}")
