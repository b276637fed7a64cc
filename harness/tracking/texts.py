"""What is written as text to a place that others read: a strategy's parameters, and nothing that opens a door."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping

from ...scenarios.errors import SpecError
from ...scenarios.spec import calls
from ...strategies.plugins import quoted
from ..models.failures import without_secrets

HIDDEN = "***"
_PRIVATE = re.compile(r"(^|_)(key|token|secret|password|passwd|authorization|headers?)$", re.IGNORECASE)
"""Names of parameters whose values are nobody's business."""


def parameters(strategy: str) -> Mapping[str, str]:
    """A strategy's text, and each parameter that it names as STAGE.PARAMETER; the second `window` is `window.2`.

    Parameters at their defaults are not in the text, so they are not here either: another version may have others.
    """
    found: dict[str, str] = {"strategy": strategy}
    hidden: list[str] = []
    seen: Counter[str] = Counter()
    try:
        stages = calls(quoted(strategy), "strategy")
    except SpecError:
        stages = []
    for stage in stages:
        seen[stage.name] += 1
        place = stage.name if seen[stage.name] == 1 else f"{stage.name}.{seen[stage.name]}"
        for name, given in stage.parameters.items():
            private = bool(given) and isinstance(given, str) and _PRIVATE.search(name) is not None
            if private:
                hidden.append(str(given))
            found[f"{place}.{name}"] = HIDDEN if private else without_secrets(str(given))
    for each in hidden:
        found["strategy"] = found["strategy"].replace(each, HIDDEN)
    found["strategy"] = without_secrets(found["strategy"])
    return found
