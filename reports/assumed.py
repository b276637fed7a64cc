"""What a bill assumes, and what it could not take into account, in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import inf

from ..harness.billing.bill import Billed
from ..harness.billing.cells import PAUSE
from ..harness.billing.simulate import Scheme, rule_of
from ..metrics.cache.automatic import AutomaticRules
from ..metrics.cache.boundary import UnitRules
from ..metrics.cache.stored import StoredRules
from ..metrics.listing import STORAGE_SOURCE
from .words import count

RULES = {
    (False, False): "Rules: those of each recording's date.",
    (True, False): "Rules: the latest.",
    (False, True): "Rules and discounts: those that design document 000 states; marks where it puts them.",
}


def assumptions(billed: Billed, asked: Sequence[Scheme]) -> list[str]:
    """What was assumed, and what could not be done."""
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
