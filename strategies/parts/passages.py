"""Long texts as passages of at most so many tokens."""

from __future__ import annotations

from collections.abc import Callable

_ENDS = ("\n\n", "\n", "。", "！", "？", ". ", "! ", "? ", "；", "; ", "，", ", ", " ")
"""Where a text is best cut, best first."""
_CHARACTERS = 8
"""A passage is looked for in so many characters a token: few texts have more."""


def passages(text: str, most_tokens: int, most: int, count: Callable[[str], int]) -> list[str]:
    """The first `most` passages of a text, in order, each at most `most_tokens` tokens by `count`, none blank.

    Cut at the end of a paragraph, a line, a sentence, a word: the best of these in the second half of what fits.
    """
    made: list[str] = []
    at = 0
    while len(made) < most:
        at += len(text[at:]) - len(text[at:].lstrip())
        if at == len(text):
            break
        size = _fitting(text[at : at + _CHARACTERS * most_tokens], most_tokens, count)
        if at + size < len(text):
            size = _end(text[at : at + size], most_tokens, count)
        made.append(text[at : at + size].rstrip())
        at += size
    return made


def _fitting(text: str, most_tokens: int, count: Callable[[str], int]) -> int:
    """The length of a start of the text that fits; at least one character, whatever that takes."""
    if count(text) <= most_tokens:
        return len(text)
    low, high = 1, len(text)
    while high - low > 8:  # to a few characters: it is cut at a word anyway
        middle = (low + high) // 2
        low, high = (middle, high) if count(text[:middle]) <= most_tokens else (low, middle)
    return low


def _end(text: str, most_tokens: int, count: Callable[[str], int]) -> int:
    """Where to cut a text that fits: after the best end in its second half."""
    for end in _ENDS:
        at = text.rfind(end, len(text) // 2)
        if at >= 0 and count(text[: at + len(end)].rstrip()) <= most_tokens:
            return at + len(end)
    return len(text)
