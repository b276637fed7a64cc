"""Strategies' texts shortened for a column, told apart all the same."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from functools import cache
from itertools import compress

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
    stages = []  # the name of each strategy and its parameters; a text that is no call, such as a file's, is a name
    for stage in text.split(" | "):
        stages.append((stage, list[str]()))
        with suppress(SyntaxError):
            call = ast.parse(stage, mode="eval").body
            if isinstance(call, ast.Call):
                stages[-1] = ast.unparse(call.func), list(map(ast.unparse, call.keywords))
    kept = [len(parameters) for _, parameters in stages]

    def shown(at: int) -> str:
        name, parameters = stages[at]
        words = [*parameters[: kept[at]], *[LEFT_OUT] * (kept[at] < len(parameters))]
        return f"{name}({', '.join(words)})" if words else name

    while len(short := " | ".join(map(shown, range(len(stages))))) > width and any(kept):
        kept[max(compress(range(len(stages)), kept), key=lambda at: len(shown(at)))] -= 1
    return short


@cache
def _named() -> dict[str, str]:
    """Return the names of recipes by the texts of their chains."""
    named = {}
    for name, recipe in NAMED.items():
        with suppress(UserError):  # a recipe that needs an extra
            named[text_of(parse(recipe.chain))] = name
    return named
