"""`ctxbench bill`: cost at providers with prompt caches."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..bill import SummaryPrompt
from .arguments import (
    BilledModelsOption,
    JsonOption,
    PricesOption,
    RunArgument,
    prices_of,
    run_folder,
)

if TYPE_CHECKING:
    import pandas as pd

    from ..bill.bill import Billed
    from ..bill.simulation import Scheme


class CacheRulesOf(StrEnum):
    """Rules of a provider's cache."""

    recording = "recording"
    latest = "latest"
    document = "document"


class Placing(StrEnum):
    """Placement of cache marks."""

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
    model: BilledModelsOption = None,
    rules: Annotated[
        CacheRulesOf,
        typer.Option(
            help="Cache rules: of the recording's date, the latest, or the simplified ones of the specification."
        ),
    ] = CacheRulesOf.recording,
    placement: Annotated[
        list[Placing] | None,
        typer.Option(
            help="Placement of cache marks, for providers that need them; repeat it to compare.",
            show_default="automatic; document under the rules document",
        ),
    ] = None,
    stored: Annotated[
        bool, typer.Option("--stored", help="Gemini: cached content stored by the hour, instead of implicit caching.")
    ] = False,
    reuse: Annotated[
        float | None,
        typer.Option(
            min=0,
            max=1,
            help="Probability that a call finds the newest cached prefix, where the provider caches by itself.",
            show_default="by the provider's evidence; `ctxbench lab validate` fits it",
        ),
    ] = None,
    token_factor: Annotated[
        float | None,
        typer.Option(
            min=0.1,
            max=10,
            help="Tokens that the provider counts for each of ours.",
            show_default="as in the recordings, else as measured for the family of models",
        ),
    ] = None,
    summaries: Annotated[
        SummaryPrompt | None,
        typer.Option(
            help="Prompt of all summaries: a text of its own; the history behind another system prompt; or "
            "the last prompt with one message more, which is read from the cache.",
            show_default="as each strategy asks for its own",
        ),
    ] = None,
    thinking: Annotated[
        bool,
        typer.Option("--thinking", help="Bill recorded reasoning in later prompts, as the model's provider keeps it."),
    ] = False,
    batch: Annotated[bool, typer.Option("--batch", help="Use the prices of batch calls.")] = False,
    prices: PricesOption = None,
    calls: Annotated[
        Path | None,
        typer.Option(
            help="Write a row for every call, and where its prefix broke, to this .csv or .parquet file.",
            metavar="FILE",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FOLDER", help="Draw the bill into this folder: SVG, PNG."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Bill a run's requests under models' prompt-cache rules and prices, without calling any model.

    Fewer tokens are not always cheaper: a context whose start changes is written to the cache again. Prices are those
    of litellm's bundled map, in US dollars, unless --prices replaces them.

    [bold]automatic[/bold]   marks where the strategy sets them, else at the end of the prompt
    [bold]marked[/bold]      only where the strategy sets them
    [bold]hour[/bold]        the end of the prompt, for an hour instead of five minutes
    [bold]document[/bold]    each long system message at the start, as the specification places them
    [bold]system[/bold]      the end of the system messages
    [bold]tail[/bold]        that, and the last two messages of the user or the tools
    [bold]anchor[/bold]      that, and before what the strategy is about to rewrite
    [bold]hindsight[/bold]   the offline optimum: the lowest bill that any placement could reach
    """
    from ...reports.bill import as_json as exact
    from ...reports.bill import assumptions, tables, totals
    from ..bill.bill import bill as billed_as
    from ..bill.recorded import billed_models
    from ..bill.requests import RunRequests, breaks
    from ..bill.simulation import Scheme
    from ..folder.run import load
    from ..folder.steps import lacking_newest
    from .output import print_json, print_tables
    from .progress import counting

    requests = RunRequests(load(run_folder(run)))
    paid = prices_of(prices, batch)
    schemes = [
        Scheme(name, where.value, rules is CacheRulesOf.latest, stored, rules is CacheRulesOf.document, reuse)
        for name in billed_models(requests.run, model or (), paid)
        for where in dict.fromkeys(
            placement or [Placing.document if rules is CacheRulesOf.document else Placing.automatic]
        )
    ]
    with counting(len(requests), "conversations × strategies") as done:
        billed = billed_as(requests, schemes, paid, done, token_factor, summaries, thinking)
    sums = totals(billed.conversations())
    if out is not None:
        _draw(billed, sums, out)
    broken = breaks(billed.requests)
    if calls is not None:
        _write(billed, broken, calls)
    notes = assumptions(billed, schemes)
    if as_json:
        print_json(exact(sums, broken, notes))
    else:
        count = int(sums.calls.max()) if len(sums) else 0
        print_tables(tables(sums, broken, count, notes, lacking_newest(requests.run)))


def _write(billed: Billed, broken: pd.DataFrame, file: Path) -> None:
    """Write every call under every scheme, and where the prefix of its prompt broke."""
    import pandas as pd

    from ...reports.render import as_csv
    from ...scenarios.errors import RunError, UserError
    from ...scenarios.files import check_file

    if file.suffix not in (".csv", ".parquet"):
        raise UserError(f"--calls {file}: write to a .csv or a .parquet file")
    if not billed.usages.keys() & set(billed.schemes):
        raise UserError("hindsight is a sum over a conversation and has no calls: name another placement as well")
    frames = [_calls(billed, scheme) for scheme in billed.schemes if scheme in billed.usages]
    whole = pd.concat(frames, ignore_index=True).merge(broken, "left", ["conversation", "strategy", "step"])
    try:
        check_file(file)
        file.write_text(as_csv(whole), "utf-8") if file.suffix == ".csv" else whole.to_parquet(file, index=False)
    except OSError as error:
        raise RunError(f"{file}: cannot be written: {error.strerror or error}") from None


def _draw(billed: Billed, total: pd.DataFrame, folder: Path) -> None:
    """Write all figures in two formats, for the first placement of marks."""
    from ...reports.figures.bill import figures
    from ...reports.figures.style import save
    from ...scenarios.errors import RunError, UserError

    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RunError(f"{folder}: cannot be made: {error.strerror or error}") from None
    first = {
        scheme.model: scheme for scheme in reversed([scheme for scheme in billed.schemes if scheme in billed.usages])
    }
    if not first:
        raise UserError("hindsight is a sum over a conversation and has no figures: name another placement as well")
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
