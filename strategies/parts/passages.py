"""Texts cut to a number of tokens: into passages, to a whole sentence, and to the passages that fit a question."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable

import numpy as np

from ctxbench.metrics.language import HAN, sentences, terms
from ctxbench.metrics.tfidf import TfIdf, best

# Where a passage is best cut, best first.
_PASSAGE_ENDS = ("\n\n", "\n", "。", "！", "？", ". ", "! ", "? ", "；", "; ", "，", ", ", " ")
# Characters per token in which the end of a passage is looked for: few texts have more.
_CHARACTERS = 8
# Where a text may be cut: after a sentence, else after a word, else anywhere.
_CUT_PLACES = (re.compile(r"[.!?](?=\s)|[。！？；\n]"), re.compile(rf"(?=\s)|[{HAN}]"), re.compile(r"(?s)."))

PASSAGE = 400
"""Most characters of a passage that is matched with a question. Shorter lines are joined, longer ones split."""
GAP = "…\n"  # stands where passages were left out


def passages(text: str, most_tokens: int, most: int, count: Callable[[str], int]) -> list[str]:
    """Return the first `most` passages of a text in order, each of at most `most_tokens` tokens by `count`, none blank.

    Each is cut at the end of a paragraph, a line, a sentence or a word: the best of these in the second half of what
    fits.
    """
    result: list[str] = []
    at = 0
    while len(result) < most:
        at += len(text[at:]) - len(text[at:].lstrip())
        if at == len(text):
            break
        size = _fitting_size(text[at : at + _CHARACTERS * most_tokens], most_tokens, count)
        if at + size < len(text):
            fitting = text[at : at + size]
            for end in _PASSAGE_ENDS:
                place = fitting.rfind(end, size // 2)
                if place >= 0 and count(fitting[: place + len(end)].rstrip()) <= most_tokens:
                    size = place + len(end)
                    break
        result.append(text[at : at + size].rstrip())
        at += size
    return result


def both_ends(text: str, characters: int) -> str:
    """Return a text, or half as many characters from each end of a longer one: a question is at one of them."""
    half = characters // 2
    return text if len(text) <= characters else f"{text[:half]}\n{text[len(text) - half :]}"


def _fitting_size(text: str, most_tokens: int, count: Callable[[str], int], least: int = 1, exactness: int = 8) -> int:
    """Return the length of a start of the text that fits; at least `least` characters, whatever these take.

    A few characters do not matter where it is cut at a word afterwards: the longest start may be longer by fewer than
    `exactness`.
    """
    if count(text) <= most_tokens:
        return len(text)
    low, high = least, len(text)
    while high - low > exactness:
        middle = (low + high) // 2
        low, high = (middle, high) if count(text[:middle]) <= most_tokens else (low, middle)
    return low


def cut(text: str, limit: int, count: Callable[[str], int]) -> str:
    """Return the longest start of a text within `limit` tokens ending with a sentence, else a word, else anywhere."""
    if count(text) <= limit:
        return text
    for ends in _CUT_PLACES:
        places = [match.end() for match in ends.finditer(text)]
        fits = bisect_right(places, limit, key=lambda at: count(text[:at].rstrip()))
        # The bisection assumes that longer texts have more tokens, which is not always so.
        while fits and count(text[: places[fits - 1]].rstrip()) > limit:
            fits -= 1
        if fits and text[: places[fits - 1]].strip():
            return text[: places[fits - 1]].rstrip()
    return ""


def relevant_passages(text: str, question: str, budget: int, count: Callable[[str], int]) -> str:
    """Return the passages nearest to a question, in the order of the text, at most `budget` tokens by `count`.

    The nearest have the most terms in common, rare ones weighing more (`TfIdf.overlap`). With none in common they come
    from the start. A text that fits is returned whole; empty only if not even one character fits.
    """
    if count(text) <= budget:
        return text
    pieces = _join_lines(text)
    index = TfIdf()
    index.add(map(terms, pieces))
    scores = index.overlap(terms(question))
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
        places = sorted(chosen)
        gaps = np.diff([-1, *places, len(pieces)]) > 1
        joined = "".join((GAP if gap else "") + pieces[at] for at, gap in zip(places, gaps[:-1], strict=True))
        joined += GAP if gaps[-1] else ""
        if count(joined) <= budget:
            return joined
        chosen.pop()
    first = pieces[order[0]] if order else ""
    return first[: _fitting_size(first, budget, count, least=0, exactness=1)]


def _join_lines(text: str) -> list[str]:
    """Return the text in pieces of at most PASSAGE characters, each with its line end, none blank."""
    pieces: list[str] = []
    for line in text.splitlines():
        parts = [line]
        if len(line) > PASSAGE:
            parts = [s[at : at + PASSAGE] for s in sentences(line) for at in range(0, len(s), PASSAGE)]
        for part in parts:
            if not part or part.isspace():
                continue
            if pieces and len(pieces[-1]) + len(part) < PASSAGE:
                pieces[-1] += part + "\n"
            else:
                pieces.append(part + "\n")
    return pieces
