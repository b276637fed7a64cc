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


def exact_match(item: GradedItem) -> float:
    """Return 1 if the answer is an accepted one, else 0."""
    return _best(item, lambda given, accepted: float(given == accepted))


def containment(item: GradedItem) -> float:
    """Return 1 if an accepted answer stands in the answer, be it inside of words, else 0."""
    return _best(item, lambda given, accepted: float(accepted in given))


def token_f1(item: GradedItem) -> float:
    """Return the harmonic mean of the shares of words that answer and accepted answer have in common."""
    return _best(item, _f1)


def gold_share(item: GradedItem) -> float:
    """Return the share of an accepted answer's words that are in the answer."""
    return _best(item, _share)


def _best(item: GradedItem, compare: Callable[[str, str], float]) -> float:
    given = normalised(item.candidate)
    return max((compare(given, normalised(text)) for text in item.accepted), default=0.0)


def _f1(given: str, accepted: str) -> float:
    common = _common(given, accepted)
    return 2 * common / (len(given.split()) + len(accepted.split())) if common else float(given == accepted)


def _share(given: str, accepted: str) -> float:
    words = len(accepted.split())
    return _common(given, accepted) / words if words else 0.0


def _common(one: str, other: str) -> int:
    return (Counter(one.split()) & Counter(other.split())).total()


BASELINES: Mapping[str, Callable[[GradedItem], float]] = {
    "exact match": exact_match,
    "containment": containment,
    "token F1": token_f1,
    "gold tokens found": gold_share,
}
"""Baselines by the names that tables print."""
