"""A deterministic extractive summary: the sentences that matter most, in their order, within a budget of tokens.

Sentences are taken one by one, always the one that adds most for its length. The gain of a sentence only falls as
others are taken, so a heap with lazy updates (lazy greedy) finds it with few looks:

    (centrality + CUE if it decides something + CUE if it constrains something
     + VALUE for each of its values that no sentence taken has, up to VALUES of them
     + weight of its words that no sentence taken has, 1 = a rich sentence's, 2 at most) / √tokens

Centrality is the cosine with the centroid of all sentences (TF-IDF, each sentence a document), 1 at most; a word weighs
its idf; a rich sentence is heavier than three of four. A sentence that adds no value and few words is left out.

There is no graph of sentences, so nothing grows with the square of the material (decision 7: what else was tried).
"""

from __future__ import annotations

import heapq
import math
import re
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import NamedTuple

from .language import HAN, STOP_WORDS, is_constraint, is_decision, parts, sentences, words
from .values import Value, values

_IN_A_WORD = re.compile(rf"[^\W{HAN}]{{2}}")

PIECE = 240  # characters beyond which a sentence, such as a line of JSON or of a log, is cut into pieces
CUE = 0.5
VALUE = 0.3
VALUES = 6
RICH = 0.75  # share of sentences that are lighter than a rich one
FEW = 0.2  # share of new words under which a sentence that brings no new value says nothing new


class Features(NamedTuple):
    """Features of a sentence that do not depend on its neighbours: words, values, and the worth of its cues."""

    terms: frozenset[str]
    values: tuple[Value, ...]
    cues: float


@lru_cache(1 << 16)
def _features(sentence: str) -> Features:
    """Read the features of one sentence. By far the slowest part of extracting."""
    cues = CUE * is_decision(sentence) + CUE * is_constraint(sentence)
    return Features(frozenset(words(sentence)) - STOP_WORDS, values(sentence), cues)


@lru_cache(1 << 14)
def _pieces(text: str) -> tuple[str, ...]:
    """Return the sentences of a text, cut into parts of at most PIECE characters at spaces or after punctuation."""
    return tuple(piece for sentence in sentences(text) for piece in parts(sentence, PIECE, [" ,;，、；"]))


class _Sentence:
    """A candidate sentence: its text and features, and the part of its gain that does not depend on the others."""

    __slots__ = ("base", "length", "terms", "text", "tokens", "values", "weight")

    def __init__(self, text: str, tokens: int, features: Features) -> None:
        self.text, self.tokens, self.length = text, tokens, math.sqrt(max(tokens, 1))
        self.terms, self.values, self.base = features
        self.weight = 0.0


def extract(texts: Sequence[str], budget: int, count: Callable[[str], int]) -> str:
    """Return a summary of at most `budget` tokens by `count`, one sentence per line, in the order of the texts.

    Where over a quarter of the budget is left because no whole sentence fits any more, the start of one fills it, cut
    between words. Empty only if all texts are blank, or if the budget has no room for one character.
    """
    if budget <= 0:
        return ""
    different = dict.fromkeys(piece for text in texts for piece in _pieces(text))
    candidates = [_Sentence(piece, count(piece + "\n"), _features(piece)) for piece in different]
    selected, too_long = _selected(candidates, budget + count("\n"), _weighed(candidates))
    lines = {at: candidates[at].text for at in selected}
    while count(_text(lines)) > budget:  # more than the sum of the lines, which no tokenizer rules out
        too_long.append(lines.popitem()[0])
    room = budget - count(_text(lines)) - (count("\n") if lines else 0)
    if room * 4 > budget:
        for at in too_long:
            cut = _cut(candidates[at].text, room, count)
            if cut and count(_text(lines | {at: cut})) <= budget:
                return _text(lines | {at: cut})
    return _text(lines)


def _text(lines: dict[int, str]) -> str:
    return "\n".join(lines[at] for at in sorted(lines))


def _weighed(candidates: Sequence[_Sentence]) -> dict[str, float]:
    """Return the weight of every word, and set the weight and the centrality of each candidate."""
    often = Counter(term for candidate in candidates for term in candidate.terms)
    weight = {term: math.log(1 + len(candidates) / times) for term, times in often.items()}
    centroid: dict[str, float] = defaultdict(float)
    square = {term: value**2 for term, value in weight.items()}
    norms = [math.sqrt(math.fsum(map(square.__getitem__, candidate.terms))) or 1.0 for candidate in candidates]
    for candidate, norm in zip(candidates, norms, strict=True):
        candidate.weight = math.fsum(map(weight.__getitem__, candidate.terms))
        for term in candidate.terms:
            centroid[term] += weight[term] / norm
    pull = {term: value * centroid[term] for term, value in weight.items()}
    sums = (math.fsum(map(pull.__getitem__, candidate.terms)) for candidate in candidates)
    central = [total / norm for total, norm in zip(sums, norms, strict=True)]
    most = max(central, default=0.0) or 1.0
    for candidate, centrality in zip(candidates, central, strict=True):
        candidate.base += centrality / most
    return weight


def _selected(candidates: Sequence[_Sentence], room: int, weight: dict[str, float]) -> tuple[list[int], list[int]]:
    """Return the candidates that fit in `room` tokens, and those that were too long, both best first."""
    selected, too_long = list[int](), list[int]()
    known_terms: set[str] = set()
    known_values: set[Value] = set()
    rich = sorted(candidate.weight for candidate in candidates)[int(len(candidates) * RICH)] if candidates else 1.0

    def new(candidate: _Sentence) -> tuple[int, float]:
        """Count the values of a candidate that are new, and weigh its words that are."""
        values = sum(value not in known_values for value in candidate.values)
        return values, math.fsum(map(weight.__getitem__, candidate.terms - known_terms))

    def adds(candidate: _Sentence, values: int, words: float) -> float:
        return (candidate.base + VALUE * min(values, VALUES) + min(words / (rich or 1.0), 2.0)) / candidate.length

    # Lazy greedy: no graph of sentences, so nothing grows with the square of the material.
    heap = [
        (-adds(candidate, len(candidate.values), candidate.weight), at, 0) for at, candidate in enumerate(candidates)
    ]
    heapq.heapify(heap)
    while heap:
        _, at, seen = heapq.heappop(heap)
        candidate = candidates[at]
        if candidate.tokens > room:
            too_long.append(at)
            continue
        # Its gain is older than the last selection, and can only have fallen: look again when it is first once more.
        if seen < len(selected):
            heapq.heappush(heap, (-adds(candidate, *new(candidate)), at, len(selected)))
            continue
        values, words = new(candidate)
        if selected and not values and words < FEW * candidate.weight:
            continue
        selected.append(at)
        room -= candidate.tokens
        known_terms |= candidate.terms
        known_values.update(candidate.values)
    return selected, too_long


def _cut(text: str, budget: int, count: Callable[[str], int]) -> str:
    """Return the start of a text that fits, cut at a space if there is one in it."""
    # A longer start has mostly, not always, more tokens: halving finds a place that the loop puts right.
    fits = bisect_right(range(len(text) + 1), budget, key=lambda size: count(text[:size])) - 1
    while fits > 0 and count(text[:fits].strip()) > budget:
        fits -= 1
    if 0 < fits < len(text) and _IN_A_WORD.match(text, fits - 1):
        fits = text.rfind(" ", 0, fits) if " " in text[:fits].strip() else fits
    return text[: max(fits, 0)].strip()
