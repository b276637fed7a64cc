"""Printing: tables on a terminal, figures as JSON, Markdown and text in files."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import msgspec
import typer
from rich.console import Console

from ctxbench.harness.bill.requests import billed_models
from ctxbench.harness.folder.files import write_file
from ctxbench.harness.folder.run import load
from ctxbench.reports import LOSE
from ctxbench.reports.bill import against
from ctxbench.reports.render import WIDE, Table, exact, show
from ctxbench.reports.render import markdown as as_markdown
from ctxbench.reports.results import Results, as_json
from ctxbench.reports.reuse import reuse_table
from ctxbench.reports.tables import incomplete, lacking, own_table, tables
from ctxbench.reports.verdict import as_json as verdict_json
from ctxbench.reports.verdict import verdict
from ctxbench.reports.verdict_text import FAILURES_NAMED, first_screen, is_traps, trap_table
from ctxbench.scenarios.errors import UserError

from .streams import say


def results_of(folder: Path, models: Sequence[str] = (), *, lose: float = LOSE, text: bool = True) -> Results:
    """Return the results of a run, billed under some models, or else those of `billed_models`."""
    run = load(folder)
    return Results(run, billed_models(run, models), named=models, lose=lose, text=text)


def verdict_tables(results: Results) -> list[Table]:
    """Return the verdict and the measures, or of traps which of them break a strategy; and what could not be read."""
    if is_traps(results):
        return [trap_table(results), *incomplete(results.summary)]
    left_out = incomplete(results.summary, FAILURES_NAMED)  # which the verdict names
    return [*first_screen(verdict(results)), *own_table(results.own), *left_out]


def run_tables(results: Results) -> list[Table]:
    """Return the verdict and all tables of a run; with `none` in it, also what each strategy saves of the bill."""
    shown = [trap_table(results)] if is_traps(results) else first_screen(verdict(results))
    shown += [*tables(results.summary), *own_table(results.own)]
    shown += [] if results.reuse.empty else [reuse_table(results.reuse)]
    if "none" in results.strategies and len(results.totals):
        shown.append(against(results.totals, lacking(results.summary), *results.sampling_notes))
    return shown


def run_json(results: Results) -> dict[str, object]:
    """Return the verdict on a run and all its figures."""
    own = {"own_metrics": figures} if (figures := results.own) else {}
    return {"verdict": verdict_json(verdict(results)), **as_json(results.summary), **own}


def console() -> Console:
    """Return standard output for tables. Without a terminal or a width in COLUMNS, a row is one line."""
    fits = sys.stdout.isatty() or os.environ.get("COLUMNS", "").strip("0").isdecimal()
    return Console(width=None if fits else WIDE, highlight=False)


def check_form(json: bool, markdown: Path | None) -> None:
    """Raise UserError where two forms of output are asked for, before anything is measured."""
    if json and markdown is not None:
        raise UserError("give --json or --markdown, not both")


def put(
    value: Callable[[], object], shown: Callable[[], Iterable[Table]], json: bool, markdown: Path | None = None
) -> None:
    """Print a result as JSON, as Markdown in a file, or as tables: what is not asked for is not made."""
    if json:
        print_json(value())
    elif markdown is not None:
        write_text(as_markdown(list(shown())), markdown)
    else:
        print_tables(list(shown()))


def print_tables(shown: list[Table]) -> None:
    """Print tables on standard output."""
    show(console(), shown)


def print_json(value: object) -> None:
    """Print figures as JSON on standard output."""
    typer.echo(msgspec.json.format(msgspec.json.encode(exact(value)), indent=2).decode())


def write_text(text: str, file: Path) -> None:
    """Write text; - is standard output. Raises RunError for a file that cannot be written."""
    if str(file) == "-":
        typer.echo(text, nl=False)
        return
    write_file(file, text)  # whoever reads it at any moment finds it whole
    say(f"written: {file}")
