"""Printing a run: its tables on a terminal, or its figures as JSON."""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec
import typer
from rich.console import Console

from ...reports.summary import summarise
from ...reports.tables import as_json, show, tables
from ..load import load

WIDTH = 160
"""Columns of a table where standard output is no terminal."""


def print_run(folder: Path, json: bool) -> None:
    """Print the figures of a run on standard output."""
    summary = summarise(load(folder))
    if json:
        typer.echo(msgspec.json.format(msgspec.json.encode(as_json(summary)), indent=2).decode())
        return
    console = Console(width=None if sys.stdout.isatty() else WIDTH, highlight=False)
    show(console, list(tables(summary)))
