"""The lowest bill that any placement of cache marks could have reached, cell by cell."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator

from ...metrics.cache.cell import is_system_first, requests, system_first
from ...metrics.cache.explicit import ExplicitRules
from ...metrics.cache.hindsight import Bound, lowest
from ...metrics.prices import Price, Tariff
from .cells import Cells
from .simulate import Scheme, rule_of

BOUND = "hindsight"
"""The placement that is none, but a bound."""
NEVER = ExplicitRules(least=sys.maxsize)
"""Where nothing is cached, as on a host that had no cache yet."""


def bounds(cells: Cells, scheme: Scheme, tariff: Tariff, priced: Callable[[Price], Price]) -> Iterator[Bound]:
    """One a cell, in the order of the tables. None is known where conversations share a cache: NaN dollars."""
    for cell in cells:
        if cell.shares:
            yield Bound(math.nan, 0, 0, 0, 0)
            continue
        rule = rule_of(scheme, cell.day)
        first = rule is not None and rule.system_first and not is_system_first(cell.steps, cell.messages)
        steps = system_first(cell.steps, cell.messages) if first else cell.steps
        asked = (
            (request, priced(tariff.at(request.tokens, request.started if cell.timed else None)))
            for request in requests(steps, cell.messages)
        )
        yield lowest(asked, rule.rules if rule is not None and isinstance(rule.rules, ExplicitRules) else NEVER)


def is_bounded(scheme: Scheme) -> bool:
    """Whether the model's cache wants marks: others have no bound of this kind."""
    rule = rule_of(scheme, None)
    return rule is not None and isinstance(rule.rules, ExplicitRules)
