"""Partial loading (design document 001 §6 phase 3, §7.2): of an archived result only what a question is about."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...metrics.language import sentences, words
from ...metrics.tfidf import TfIdf, best

PIECE = 400
"""Characters that a passage has at most; lines are put together up to it, longer ones taken by sentences."""

GAP = "…\n"
"""Stands where something was left out."""


def passages(text: str, question: str, budget: int, count: Callable[[str], int]) -> str:
    """The passages nearest to a question, in the order of the text, at most `budget` tokens by `count`.

    Nearest = most words in common, rare ones weighing more (`TfIdf.overlap`). Where nothing is in common they are taken
    from the start. A text that fits is whole. Empty only if not one passage's first character fits.
    """
    if count(text) <= budget:
        return text
    pieces = _pieces(text)
    index = TfIdf()
    index.add(map(words, pieces))
    scores = index.overlap(words(question))
    order = [at for at in best(scores, len(pieces)) if scores[at] > 0] or list(range(len(pieces)))
    order.sort(key=lambda at: (-scores[at], at))
    gap = count(GAP)
    chosen: list[int] = []
    left = budget
    for at in order:
        cost = count(pieces[at]) + gap
        if cost <= left:
            chosen.append(at)
            left -= cost
    while chosen:
        made = _joined(pieces, sorted(chosen))
        if count(made) <= budget:
            return made
        chosen.pop()
    return _cut(pieces[order[0]], budget, count) if order else ""


def _pieces(text: str) -> list[str]:
    """The text in pieces of at most PIECE characters, each ending with its line end; none blank."""
    made: list[str] = []
    for row in text.splitlines():
        parts = [row] if len(row) <= PIECE else [s[at : at + PIECE] for s in sentences(row) for at in _steps(s)]
        for part in parts:
            if not part or part.isspace():
                continue
            if made and len(made[-1]) + len(part) < PIECE:
                made[-1] += part + "\n"
            else:
                made.append(part + "\n")
    return made


def _steps(text: str) -> range:
    return range(0, len(text), PIECE)


def _joined(pieces: list[str], places: list[int]) -> str:
    """Pieces in order, with a gap wherever one was left out."""
    ends = np.diff([-1, *places, len(pieces)]) > 1
    return "".join((GAP if gap else "") + pieces[at] for at, gap in zip(places, ends[:-1], strict=True)) + (
        GAP if ends[-1] else ""
    )


def _cut(text: str, budget: int, count: Callable[[str], int]) -> str:
    """The longest start of a text that is within the budget, by halving."""
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if count(text[:middle]) <= budget else (low, middle - 1)
    return text[:low]
