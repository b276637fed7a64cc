"""`ctxbench bill`: what the requests of a run would cost under providers' caches and prices."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

MODELS = ("claude-sonnet-5", "gpt-5.6", "gemini-2.5-pro")


class Rules(StrEnum):
    """Which rules of a provider count."""

    recording = "recording"
    latest = "latest"


class Placing(StrEnum):
    """Where marks are put."""

    automatic = "automatic"
    marked = "marked"


def bill(
    run: Annotated[Path, typer.Argument(help="The run folder.", show_default="the newest under runs/")] = Path("runs"),
    model: Annotated[
        list[str] | None,
        typer.Option("--model", "-m", help="A model by its litellm name; repeat it.", show_default=", ".join(MODELS)),
    ] = None,
    rules: Annotated[Rules, typer.Option(help="The rules of the recording's date, or the latest.")] = Rules.recording,
    placement: Annotated[
        Placing,
        typer.Option(help="Where a strategy sets no cache marks: at the end of the prompt, or nothing is cached."),
    ] = Placing.automatic,
    as_json: Annotated[bool, typer.Option("--json", help="Print the figures as JSON on standard output.")] = False,
) -> None:
    """Bill a run's requests under the prompt-cache rules and prices of models, without running anything again.

    Fewer tokens are not always cheaper: a context whose start changes is written to the cache again. Prices are those
    of litellm's bundled map, in US dollars.
    """
    from ...metrics.models import map_version
    from ...reports.billing import as_json as exact
    from ...reports.billing import tables, totals
    from ..billing import PAUSE, bills, overmarked, own_costs, unruled, untimed
    from ..load import load
    from .runs import chosen
    from .summary import print_json, print_tables

    found = load(chosen(run))
    models = tuple(dict.fromkeys(model or MODELS))
    made = bills(found, models, placement.value, rules is Rules.latest)
    notes = [f"Prices: {map_version()}."]
    if count := untimed(found):
        notes.append(f"Assumed: {count:,} conversations have no times; their calls are {PAUSE:g} s apart.")
    if count := overmarked(found):
        notes.append(f"{count:,} calls have more than 4 cache marks, which no provider takes; the last 4 count.")
    notes += [f"No cache rule is known for {each}: nothing is cached." for each in unruled(models)]
    total = totals(made, own_costs(found))
    if as_json:
        print_json(exact(total, notes))
    else:
        print_tables(tables(total, notes))
