"""Printing a run: its tables on a terminal, or its figures as JSON."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec
import typer
from rich.console import Console

from ...reports.bill import against
from ...reports.render import WIDE, Table, show
from ...reports.results import Results, as_json
from ...reports.strategy_tables import conversation_table
from ...reports.summary import by_conversation, summarise
from ...reports.tables import tables
from ...scenarios.errors import RunError
from ..folder.run import load
from .arguments import MODELS


def results_of(folder: Path, models: Sequence[str] = MODELS) -> Results:
    """A run to be shown, and billed under these models."""
    return Results(load(folder), tuple(dict.fromkeys(models)))


def run_tables(results: Results, by_kind: bool = False) -> list[Table]:
    """The tables of a run; with `none` in it, also what each strategy saves of the bill."""
    found = list(tables(results.summary, by_kind))
    if "none" in results.strategies and len(results.totals):
        found.append(against(results.totals, *results.sampled))
    return found


def conversation_tables(folder: Path) -> list[Table]:
    """The table of a run with a row per conversation and strategy."""
    return [conversation_table(by_conversation(load(folder)))]


def print_run(folder: Path, json: bool, by_kind: bool = False) -> None:
    """Print the figures of a run on standard output."""
    if json:
        print_json(as_json(summarise(load(folder))))
    else:
        print_tables(run_tables(results_of(folder), by_kind))


def print_cells(folder: Path, json: bool) -> None:
    """Print the figures of every conversation under every strategy on standard output."""
    if json:
        cells = by_conversation(load(folder))
        print_json([{"conversation": name, "strategy": strategy, **values} for name, strategy, values in cells])
    else:
        print_tables(conversation_tables(folder))


def console() -> Console:
    """Standard output, for tables. Where it is no terminal and COLUMNS asks for no width, a row is a line."""
    fits = sys.stdout.isatty() or os.environ.get("COLUMNS", "").strip("0").isdecimal()
    return Console(width=None if fits else WIDE, highlight=False)


def print_tables(found: list[Table]) -> None:
    """Print tables on standard output."""
    show(console(), found)


def print_json(value: object) -> None:
    """Print a value as JSON on standard output."""
    typer.echo(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())


def write_markdown(found: Sequence[Table], file: Path, append: bool = False) -> None:
    """Tables as Markdown; - is standard output."""
    from ...reports.render import markdown

    write_text(markdown(found), file, append)


def write_text(text: str, file: Path, append: bool = False) -> None:
    """Text; - is standard output. Raises RunError for a file that cannot be written."""
    if str(file) == "-":
        typer.echo(text, nl=False)
        return
    try:
        with file.open("a" if append else "w", encoding="utf-8") as out:
            out.write(text)
    except OSError as error:
        raise RunError(f"{file}: cannot be written: {error.strerror or error}") from None
    typer.echo(f"written: {file}", err=True)
