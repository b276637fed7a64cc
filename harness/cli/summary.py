"""Printing a run: its tables on a terminal, or its figures as JSON."""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec
import typer
from rich.console import Console

from ...reports.render import WIDE, Table, show
from ...reports.summary import by_conversation, summarise
from ...reports.tables import as_json, conversation_table, tables
from ..load import load


def run_tables(folder: Path) -> list[Table]:
    """The tables of a run."""
    return list(tables(summarise(load(folder))))


def conversation_tables(folder: Path) -> list[Table]:
    """The table of a run with a row per conversation and strategy."""
    return [conversation_table(by_conversation(load(folder)))]


def print_run(folder: Path, json: bool) -> None:
    """Print the figures of a run on standard output."""
    if json:
        _print_json(as_json(summarise(load(folder))))
    else:
        _print(run_tables(folder))


def print_cells(folder: Path, json: bool) -> None:
    """Print the figures of every conversation under every strategy on standard output."""
    if json:
        cells = by_conversation(load(folder))
        _print_json([{"conversation": name, "strategy": strategy, **values} for name, strategy, values in cells])
    else:
        _print(conversation_tables(folder))


def console() -> Console:
    """Standard output, for tables. Where it is no terminal, a row is a line and nothing is cut."""
    return Console(width=None if sys.stdout.isatty() else WIDE, highlight=False)


def _print(found: list[Table]) -> None:
    show(console(), found)


def _print_json(value: object) -> None:
    typer.echo(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())
