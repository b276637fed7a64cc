"""`ctxbench validate`: the cache models and the prices beside the usage and the costs that recordings hold."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from ...scenarios.errors import RecordingError
from .streams import say, say_what_was_passed_over

SAID = 8
"""Calls left out that are named one by one."""


def validate(
    inputs: Annotated[list[str], typer.Argument(help="Recordings that hold the provider's usage.", metavar="PATH")],
    form: Annotated[str | None, typer.Option("--format", "-f", help="Read every file as this format.")] = None,
    encoding: Annotated[
        str | None,
        typer.Option(help="For our own token counts.", show_default="the model's, where published; else o200k_base"),
    ] = None,
    prices: Annotated[
        Path | None, typer.Option(help="A TOML file with prices of your own (docs/prices.md).", metavar="FILE")
    ] = None,
    figure: Annotated[
        Path | None, typer.Option(help="Draw tokens read, predicted against reported, as .svg or .png.", metavar="FILE")
    ] = None,
    strict: Annotated[bool, typer.Option("--strict/--keep-going", help="Stop at the first bad recording.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print every call as JSON on standard output.")] = False,
) -> None:
    """Replay recorded requests through the cache model of their provider and date, and compare call by call.

    The prompt cache of each model is simulated under the rules that were in force when the recording was made. What it
    says was read from the cache is compared with what the provider reported, and recorded costs with what the reported
    usage costs.
    """
    from ...metrics.prices import Prices, read_prices
    from ...metrics.validation.calibration import Counters
    from ...metrics.validation.validation import validation
    from ...reports.figures.style import check
    from ...reports.validation import as_json, tables
    from ...scenarios.errors import RunError
    from ...scenarios.source import Problems
    from ..engine.plan import RunInputs
    from .output import print_json, print_tables

    if figure is not None:
        check(figure)
    given = Prices(read_prices(prices)) if prices is not None else Prices()
    problems = Problems(strict=strict)
    conversations = list(RunInputs(tuple(inputs), form).open(problems).conversations())
    found = validation(conversations, Counters(encoding), given)
    for problem in problems.found:
        say(f"left out: {problem}")
    _say_left_out(found.replayed.left_out)
    say_what_was_passed_over(problems.ignored, problems.notes)
    if found.empty:
        raise RunError("no recorded call reports its usage: there is nothing to compare with")
    if figure is not None:
        from ...reports.figures.agreement import agreement
        from ...reports.figures.style import save

        save(agreement(found.rows), figure)
    if json:
        print_json({**as_json(found), "problems": [str(problem) for problem in problems.found]})
    else:
        print_tables(tables(found))


def _say_left_out(errors: Sequence[RecordingError]) -> None:
    """Calls that are not compared, the first ones one by one."""
    for error in errors[:SAID]:
        say(f"not compared: {error}")
    if len(errors) > SAID:
        say(f"not compared: {len(errors) - SAID:,} more; --json has all")
