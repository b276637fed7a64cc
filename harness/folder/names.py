"""Strategies' texts shortened for a column, told apart all the same."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable
from functools import cache

from ctxbench.scenarios.errors import UserError
from ctxbench.strategies.chain import NAMED, parse
from ctxbench.strategies.chain import spec as text_of

LEFT_OUT = "…"
"""Stands for parameters that are left out."""


def short_names(strategies: Iterable[str], width: int) -> dict[str, str]:
    """Return for each strategy its text in at most `width` characters, where that tells it from the others.

    A chain with a name is called by it. Of others the last parameters are left out: `smart(window=300, …)`.
    """
    texts = {text: text if len(text) <= width else _short(text, width) for text in strategies}
    times = Counter(texts.values())
    return {text: short if times[short] == 1 else text for text, short in texts.items()}


def _short(text: str, width: int) -> str:
    if name := _named().get(text):
        return name
    stages = [_Stage(stage) for stage in text.split(" | ")]
    while len(short := " | ".join(map(str, stages))) > width and any(stage.parameters for stage in stages):
        max(stages, key=lambda stage: len(str(stage)) if stage.parameters else 0).leave_one_out()
    return short


@cache
def _named() -> dict[str, str]:
    """Return the names of recipes by the texts of their chains."""
    named = {}
    for name, recipe in NAMED.items():
        try:
            named[text_of(parse(recipe.chain))] = name
        except UserError:  # a recipe that needs an extra
            continue
    return named


class _Stage:
    """A stage of a chain, of whose parameters some may be left out."""

    def __init__(self, text: str) -> None:
        self._name, self.parameters, self._whole = text, list[str](), True
        try:
            call = ast.parse(text, mode="eval").body
        except SyntaxError:  # a file's strategy
            return
        if isinstance(call, ast.Call):
            self._name = ast.unparse(call.func)
            self.parameters = [f"{each.arg}={ast.unparse(each.value)}" for each in call.keywords]

    def leave_one_out(self) -> None:
        """Leave out the last parameter that is there."""
        self.parameters.pop()
        self._whole = False

    def __str__(self) -> str:
        parameters = [*self.parameters, *[LEFT_OUT] * (not self._whole)]
        return f"{self._name}({', '.join(parameters)})" if parameters else self._name
