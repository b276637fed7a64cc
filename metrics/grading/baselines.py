"""Baselines that a grader has to beat: the four string comparisons by which question answering is usually scored.

As in SQuAD (Rajpurkar et al. 2016): lower case, ASCII punctuation taken out, the articles too, words parted by spaces;
here a Chinese character is a word. Each is from 0 to 1, the best over the accepted answers, and 0 if there is none.
"""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Callable, Mapping

from ..language import HAN
from . import GradedItem

_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLES = re.compile(r"\b(?:a|an|the)\b")
_HAN = re.compile(f"([{HAN}])")


def normalised(text: str) -> str:
    """Return the words of a text with a space between them."""
    bare = _ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION))
    return " ".join((bare if bare.isascii() else _HAN.sub(r" \1 ", bare)).split())


def _common(one: str, other: str) -> int:
    return (Counter(one.split()) & Counter(other.split())).total()


def _f1(given: str, accepted: str) -> float:
    common = _common(given, accepted)
    return 2 * common / (len(given.split()) + len(accepted.split())) if common else float(given == accepted)


def _best(compare: Callable[[str, str], float]) -> Callable[[GradedItem], float]:
    def of(item: GradedItem) -> float:
        given = normalised(item.candidate)
        return max((float(compare(given, normalised(text))) for text in item.accepted), default=0.0)

    return of


BASELINES: Mapping[str, Callable[[GradedItem], float]] = {
    "exact match": _best(lambda given, accepted: given == accepted),
    # Be it inside of words.
    "containment": _best(lambda given, accepted: accepted in given),
    # The harmonic mean of the shares of words that answer and accepted answer have in common.
    "token F1": _best(_f1),
    # The share of an accepted answer's words that are in the answer.
    "gold tokens found": _best(lambda given, accepted: _common(given, accepted) / max(len(accepted.split()), 1)),
}
"""Baselines by the names that tables print."""
