"""How the tokens of a call grow with the conversation."""

from __future__ import annotations

from ... import context_tables
from ...figures.curves import growth
from ...results import Results
from ..section import Drawn, Section


def section(results: Results) -> Section | None:
    """None without steps."""
    summary = results.summary
    if summary.growth.empty:
        return None
    taking_part = [name for name in results.strategies if (summary.growth.strategy == name).any()]
    figure = Drawn(
        "growth",
        "Tokens of a call by turn",
        "A panel a strategy. The dashed line is the whole history, the other what the strategy sends: mean tokens of a "
        "model call over the conversations that get so far, which are fewer at each turn. Both scales are logarithmic.",
        lambda: growth(summary.growth, taking_part),
    )
    lead = "A strategy is worth most where conversations are long. Where the lines part is from when on it saves."
    return Section("growth", "Growth", lead, (figure, context_tables.growth(summary)), {"growth": summary.growth})
