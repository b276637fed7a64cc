"""The models that strategies name in their own parameters, and what is wrong with that before anything is run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ...scenarios.errors import SetupError
from ...strategies.archive import Archive
from ...strategies.base import Strategy
from ...strategies.chain import Chain, spec
from ...strategies.facts import Facts

OWN = "run"
"""How `archive` names the run's summariser. Elsewhere it is an empty text."""


def named(strategies: Iterable[Strategy]) -> dict[str, str]:
    """The models in parameters called `summariser`, and the text of the first strategy (a chain's stage) with each."""
    found: dict[str, str] = {}
    for stage in _stages(strategies):
        model = getattr(stage, "summariser", "")
        unused = isinstance(stage, Facts) and stage.extractor != "model"
        own = isinstance(stage, Archive) and model == OWN
        if isinstance(model, str) and model and not unused and not own:
            found.setdefault(model, spec(stage))
    return found


def check_extractors(strategies: Iterable[Strategy], summariser: str) -> None:
    """Raise SetupError for facts by a model that is none: `offline` picks sentences, and never answers with facts."""
    for stage in _stages(strategies):
        if isinstance(stage, Facts) and stage.extractor == "model" and (stage.summariser or summariser) == "offline":
            raise SetupError(
                f"{spec(stage)}: the model `offline` picks sentences and cannot list facts: "
                "give --summariser MODEL, or extractor='offline'"
            )


def _stages(strategies: Iterable[Strategy]) -> Iterator[Strategy]:
    for strategy in strategies:
        if isinstance(strategy, Chain):
            yield from _stages(strategy.stages)
        else:
            yield strategy
