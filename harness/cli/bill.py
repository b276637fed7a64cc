"""`ctxbench bill`: what the requests of a run would cost under providers' caches and prices."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import StrEnum
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    import pandas as pd

    from ..billing.bill import Billed
    from ..billing.simulate import Scheme


MODELS = ("claude-sonnet-5", "gpt-5.6", "gemini-2.5-pro")
"""Of three providers that cache by different rules: what a run is billed under unless other models are named."""


RULES = {
    (False, False): "Rules: those of each recording's date.",
    (True, False): "Rules: the latest.",
    (False, True): "Rules and discounts: those that design document 000 states; marks where it puts them.",
}


class Whose(StrEnum):
    """Which rules of a provider count."""

    recording = "recording"
    latest = "latest"
    document = "document"


class Placing(StrEnum):
    """Where marks are put."""

    automatic = "automatic"
    marked = "marked"
    hour = "hour"
    document = "document"
    system = "system"
    tail = "tail"
    anchor = "anchor"
    hindsight = "hindsight"


def bill(
    run: Annotated[Path, typer.Argument(help="The run folder.", show_default="the newest under runs/")] = Path("runs"),
    model: Annotated[
        list[str] | None,
        typer.Option("--model", "-m", help="A model by its litellm name; repeat it.", show_default=", ".join(MODELS)),
    ] = None,
    rules: Annotated[
        Whose,
        typer.Option(help="The rules of the recording's date, the latest, or those of design document 000."),
    ] = Whose.recording,
    placement: Annotated[
        list[Placing] | None,
        typer.Option(
            help="Where cache marks are put, for providers that want them; repeat it to compare.",
            show_default="automatic, or document under its rules",
        ),
    ] = None,
    stored: Annotated[
        bool, typer.Option("--stored", help="Gemini: content stored by the hour, instead of implicit caching.")
    ] = False,
    batch: Annotated[bool, typer.Option("--batch", help="Prices of batch calls.")] = False,
    prices: Annotated[
        Path | None, typer.Option(help="A TOML file with prices of your own (docs/prices.md).", metavar="FILE")
    ] = None,
    calls: Annotated[
        Path | None,
        typer.Option(
            help="Write a row for every call, and where its prefix broke, to this .csv or .parquet file.",
            metavar="FILE",
        ),
    ] = None,
    figures: Annotated[
        Path | None, typer.Option(help="Write figures, as SVG and PNG, to this folder.", metavar="FOLDER")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the figures as JSON on standard output.")] = False,
) -> None:
    """Bill a run's requests under the prompt-cache rules and prices of models, without running anything again.

    Fewer tokens are not always cheaper: a context whose start changes is written to the cache again. Prices are those
    of litellm's bundled map, in US dollars, unless told otherwise.

    [bold]automatic[/bold]   marks where the strategy sets them, else at the end of the prompt
    [bold]marked[/bold]      only where the strategy sets them
    [bold]hour[/bold]        the end of the prompt, for an hour instead of five minutes
    [bold]document[/bold]    each long system message at the start, as design document 000 has it
    [bold]system[/bold]      the end of the system messages
    [bold]tail[/bold]        that, and the last two messages of the user or the tools
    [bold]anchor[/bold]      that, and before what the strategy is about to rewrite
    [bold]hindsight[/bold]   no placement, but the lowest bill that any marks could reach, for any time
    """
    from ...metrics.prices import Prices, read_prices
    from ...reports.billing import as_json as exact
    from ...reports.billing import tables, totals
    from ..billing.bill import bill as billed_as
    from ..billing.breaks import breaks
    from ..billing.cells import Cells
    from ..billing.simulate import Scheme
    from ..load import load
    from .progress import counting
    from .runs import chosen
    from .summary import print_json, print_tables

    found = Cells(load(chosen(run)))
    schemes = [
        Scheme(name, where.value, rules is Whose.latest, stored, rules is Whose.document)
        for name in dict.fromkeys(model or MODELS)
        for where in dict.fromkeys(placement or [Placing.document if rules is Whose.document else Placing.automatic])
    ]
    paid = Prices(read_prices(prices), batch) if prices else Prices(batch=batch)
    with counting(len(found), "conversations × strategies") as done:
        billed = billed_as(found, schemes, paid, done)
    total = totals(billed.conversations())
    if figures is not None:
        _draw(billed, total, figures)
    broken = breaks(billed.cells)
    if calls is not None:
        _write(billed, broken, calls)
    notes = _notes(billed, schemes)
    if as_json:
        print_json(exact(total, broken, notes))
    else:
        count = int(total.calls.max()) if len(total) else 0
        print_tables(tables(total, broken, count, notes))


def _notes(billed: Billed, asked: Sequence[Scheme]) -> list[str]:
    """What was assumed, and what could not be done."""
    from ...reports.words import count
    from ..billing.cells import PAUSE

    cells, notes = billed.cells, [f"Prices: {billed.prices.source}."]
    notes.append(RULES[billed.schemes[0].latest, billed.schemes[0].document])
    encoding = cells.run.manifest["plan"]["encoding"]
    notes.append(
        f"Tokens are counted in {encoding} for every model. A provider's own counts differ: on recordings with usage "
        "`ctxbench validate` says by how much."
    )
    if cells.untimed:
        notes.append(
            f"Assumed: {count(cells.untimed, 'conversation has', 'conversations have')} no times; calls are {PAUSE:g} "
            "s apart, under the latest rules and usual prices."
        )
    if cells.overmarked:
        notes.append(
            f"{count(cells.overmarked, 'call has', 'calls have')} more than 4 cache marks, which no provider takes; "
            "the last 4 count."
        )
    for scheme in billed.schemes:
        notes += _of_model(billed, scheme)
    dropped = dict.fromkeys(each.model for each in asked if each not in billed.schemes)
    notes += [f"{model} wants no marks: hindsight says nothing of it." for model in dropped]
    return list(dict.fromkeys(notes))


def _of_model(billed: Billed, scheme: Scheme) -> Iterator[str]:
    """The same of one model."""
    from ...metrics.cache.automatic import AutomaticRules
    from ...metrics.cache.boundary import UnitRules
    from ...metrics.cache.stored import StoredRules
    from ...metrics.listing import STORAGE_SOURCE
    from ...reports.words import count
    from ..billing.simulate import rule_of

    rule = rule_of(scheme, None)
    if said := billed.prices.instead(scheme.model):
        yield f"{said}."
    if rule is None:
        yield f"No cache rule is known for {scheme.model}: nothing is cached."
    elif isinstance(rule.rules, (AutomaticRules, UnitRules)) and rule.rules.lifetime < inf:
        minutes = f"{rule.rules.lifetime / 60:g} minutes"
        yield f"Assumed: what nobody asks {scheme.model} for stays cached for {minutes}; no exact time is published."
    elif isinstance(rule.rules, StoredRules):
        yield f"Storage prices: {STORAGE_SOURCE}."
    over = int((billed.cells.tokens > (billed.window(scheme) or inf)).sum())
    if over:
        larger = count(over, "request is", "requests are")
        yield f"{larger} larger than the window of {scheme.model}, and billed as if it took them."


def _write(billed: Billed, broken: pd.DataFrame, file: Path) -> None:
    """Every call under every scheme, and where the prefix of its prompt broke."""
    import pandas as pd

    from ...scenarios.errors import RunError, UserError

    if file.suffix not in (".csv", ".parquet"):
        raise UserError(f"--calls {file}: write to a .csv or a .parquet file")
    if not billed.usages.keys() & set(billed.schemes):
        raise UserError("hindsight is a sum over a conversation, and has no calls: name another placement as well")
    frames = [_calls(billed, scheme) for scheme in billed.schemes if scheme in billed.usages]
    whole = pd.concat(frames, ignore_index=True).merge(broken, "left", ["conversation", "strategy", "step"])
    try:
        whole.to_csv(file, index=False) if file.suffix == ".csv" else whole.to_parquet(file, index=False)
    except OSError as error:
        raise RunError(f"{file}: cannot be written: {error.strerror or error}") from None


def _draw(billed: Billed, total: pd.DataFrame, folder: Path) -> None:
    """All figures, each in two formats: a placement of marks that is not the first has none."""
    from ...reports.figures.billing import figures
    from ...reports.figures.style import save
    from ...scenarios.errors import RunError, UserError

    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RunError(f"{folder}: cannot be made: {error.strerror or error}") from None
    first = {scheme.model: scheme for scheme in reversed([each for each in billed.schemes if each in billed.usages])}
    if not first:
        raise UserError("hindsight is a sum over a conversation, and has no figures: name another placement as well")
    calls = {model: billed.calls(first[model]) for model in dict.fromkeys(total.model) if model in first}
    placements = total.model.map(lambda model: first[model].placement if model in first else "")
    rows = total[total.placement == placements]
    for name, drawn in figures(rows, calls).items():
        for ending in ("svg", "png"):
            save(drawn, folder / f"{name}.{ending}")


def _calls(billed: Billed, scheme: Scheme) -> pd.DataFrame:
    frame = billed.calls(scheme)
    frame.insert(0, "placement", scheme.placement)
    frame.insert(0, "model", scheme.model)
    return frame
