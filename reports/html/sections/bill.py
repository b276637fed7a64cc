"""What the calls would cost, by component and provider."""

from __future__ import annotations

from ...assumed import assumptions
from ...billing import HOW, against, bill_of
from ...figures.billing import parts
from ...render import Table
from ...results import Results
from ..section import Drawn, Section


def section(results: Results) -> Section | None:
    """None where there was no conversation that every strategy finished, or no call."""
    found = results.totals
    if found.empty:
        return None
    figure = Drawn(
        "bill",
        "What the bill is made of",
        "A panel a model, a bar a strategy, in US dollars: prompt tokens read from the cache, written to it and "
        "neither, the recorded output, storage, and the strategy's own model calls.",
        lambda: parts(found),
    )
    bills = [
        bill_of(f"The bill under {model}", rows) for model, rows in found.groupby("model", observed=True, sort=False)
    ]
    saved = [against(found)] if "none" in results.strategies else []
    notes = assumptions(results.billed, results.billed.schemes)
    notes[:0] = results.sampled
    lead = (
        "Fewer tokens are not always cheaper: a context whose start changes is written to the prompt cache again, and "
        "what is read from it costs a tenth or so. Prices and cache rules are each provider's own."
    )
    how = Table("How it was billed", (), (), (HOW, *notes))
    return Section("bill", "Bill", lead, (figure, *saved, *bills, how), {"bill": found})
