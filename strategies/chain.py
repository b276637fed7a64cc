"""Strategies as text and in chains: `archive(threshold=10000) | window(max_tokens=8000)`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.metadata import entry_points
from typing import Any

from ..scenarios import spec as text_of
from .base import Context, Desk, Strategy, View, budget_of


@dataclass(frozen=True, slots=True)
class Chain:
    """Stages in order, each given what the one before would send. A chain is itself a strategy."""

    stages: tuple[Strategy, ...]

    @property
    def budget(self) -> int | None:
        """The last stage's promise: stages before it may be undone."""
        return budget_of(self.stages[-1])

    def start(self, desk: Desk) -> View:
        views = [stage.start(desk) for stage in self.stages]

        def view(context: Context) -> Context:
            for each in views:
                context = each(context)
            return context

        return view


@cache
def strategies() -> dict[str, type[Any]]:
    """The strategy classes by name, from the entry point group `ctxbench.strategies`."""
    found = {point.name: point.load() for point in entry_points(group="ctxbench.strategies")}
    return dict(sorted(found.items()))


def parse(text: str) -> Strategy:
    """A strategy, or a chain of them with `|` between, from its text. Raises SpecError."""
    stages: list[Strategy] = [text_of.build(call, strategies(), "strategy") for call in text_of.calls(text, "strategy")]
    return stages[0] if len(stages) == 1 else Chain(tuple(stages))


def spec(strategy: Strategy) -> str:
    """The text of a strategy: `parse(spec(s)) == s`."""
    if isinstance(strategy, Chain):
        return " | ".join(spec(stage) for stage in strategy.stages)
    names = {kind: name for name, kind in strategies().items()}
    return text_of.spec(names[type(strategy)], strategy)
