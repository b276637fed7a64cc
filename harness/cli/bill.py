"""`ctxbench bill`: what the requests of a run would cost under providers' caches and prices."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .arguments import MODELS, RunArgument, chosen

if TYPE_CHECKING:
    import pandas as pd

    from ..bill.bill import Billed
    from ..bill.simulation import Scheme


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
    run: RunArgument = Path("runs"),
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
    from ...reports.bill import as_json as exact
    from ...reports.bill import assumptions, tables, totals
    from ..bill.bill import bill as billed_as
    from ..bill.prefix_breaks import breaks
    from ..bill.requests import RunRequests
    from ..bill.simulation import Scheme
    from ..folder.run import load
    from .output import print_json, print_tables
    from .progress import counting

    found = RunRequests(load(chosen(run)))
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
    notes = assumptions(billed, schemes)
    if as_json:
        print_json(exact(total, broken, notes))
    else:
        count = int(total.calls.max()) if len(total) else 0
        print_tables(tables(total, broken, count, notes))


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
    from ...reports.figures.bill import figures
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
