"""`ctxbench bill`: cost at providers with prompt caches."""

from __future__ import annotations

from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated

from msgspec import Meta

from ctxbench.harness.bill import CacheRules

from .arguments import run_folder

# An enumeration, since typer takes no list of literals.
Placing = StrEnum("Placing", ["automatic", "marked", "hour", "document", "system", "tail", "anchor", "hindsight"])


def bill(
    run: Path = Path("runs"),
    *,
    model: list[str] | None = None,
    rules: CacheRules = "recording",
    placement: list[Placing] | None = None,
    reuse: Annotated[float | None, Meta(ge=0, le=1)] = None,
    cold: bool = False,
    thinking: bool = False,
    batch: bool = False,
    as_json: bool = False,
) -> None:
    """Bill a run's requests under models' prompt-cache rules and prices, without calling any model.

    Fewer tokens are not always cheaper: a context whose start changes is written to the cache again. Prices are those
    of genai-prices, today's, in US dollars, unless a file of your own replaces them (docs/prices.md).

    [bold]automatic[/bold]   marks where the strategy sets them, else at the end of the prompt
    [bold]marked[/bold]      only where the strategy sets them
    [bold]hour[/bold]        the end of the prompt, for an hour instead of five minutes
    [bold]document[/bold]    each long system message at the start, as the specification places them
    [bold]system[/bold]      the end of the system messages
    [bold]tail[/bold]        that, and the last two messages of the user or the tools
    [bold]anchor[/bold]      that, and before what the strategy is about to rewrite
    [bold]hindsight[/bold]   the offline optimum: the lowest bill that any placement could reach

    Args:
        rules: Cache rules: of the recording's date, the latest, those of content stored by the hour (Gemini), or the
            simplified ones of the specification.
        placement: Placement of cache marks, for providers that need them; repeat it to compare. [default: automatic;
            document under the rules document]
        reuse: Share of the cached tokens that calls find. [default: by the recordings, where cache marks were sent,
            else by the provider's evidence; `ctxbench lab validate` measures it]
        cold: Let every conversation begin with an empty cache, and not with what its first recorded call read.
        thinking: Bill recorded reasoning in later prompts, as the model's provider keeps it.
        batch: Use the prices of batch calls.
    """
    from ctxbench.harness.bill import usual_prices
    from ctxbench.harness.bill.bill import bill as billed_as
    from ctxbench.harness.bill.requests import RunRequests, billed_models, breaks
    from ctxbench.harness.bill.simulation import Scheme
    from ctxbench.harness.folder.run import lacking_newest, load
    from ctxbench.reports.bill import assumptions, causes, tables, totals

    from .output import put
    from .progress import counting

    requests = RunRequests(load(run_folder(run)))
    paid = usual_prices(batch)
    schemes = [
        Scheme(name, where.value, rules, reuse, not cold)
        for name in billed_models(requests.run, model or (), paid)
        for where in dict.fromkeys(placement or [Placing("document" if rules == "document" else "automatic")])
    ]
    with counting(len(requests), "conversations × strategies") as done:
        billed = billed_as(requests, schemes, paid, done, thinking)
    sums = totals(billed.conversations())
    broken = breaks(billed.requests)
    notes = assumptions(billed, schemes)
    count = int(sums.calls.max()) if len(sums) else 0
    shown = partial(tables, sums, broken, count, notes, lacking_newest(requests.run))
    put(lambda: {"bills": sums, "breaks": causes(broken), "assumed": notes}, shown, as_json)
