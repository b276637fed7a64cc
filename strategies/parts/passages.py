"""What of a history stays or goes together, and how much it matters by rules (design document 000 §2.2)."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Literal, NamedTuple

from ...scenarios.model import Message
from ...scenarios.view import Messages, Span

KEYWORDS = (
    *("决定", "确定", "最终"),
    *("decide", "decided", "decision", "confirm", "confirmed", "final", "finally"),
)
"""000 §2.2 has the Chinese ones."""

_LISTING = re.compile(r"^[ \t]*(?:[-*+•][ \t]|\d{1,3}(?:[.)][ \t]|、))", re.MULTILINE)


class Piece(NamedTuple):
    """What of the history can stay or go together."""

    at: int
    """Where its first message stands among the spoken ones."""
    stop: int
    messages: tuple[Message, ...]
    tokens: int
    score: int
    stays: Literal["must", "may", "never"]
    newest: bool

    def rank(self) -> tuple[bool, int, int]:
        """The best first: the newest piece, then the highest score, then the later."""
        return not self.newest, -self.score, -self.at


def scorer(
    user: int, call: int, keyword: int, code: int, listing: int, keywords: Sequence[str]
) -> Callable[[Message], int]:
    """A function that says what a message scores by itself, linear in its text.

    English keywords are whole words in any case, others stand anywhere. A code block has a fence; a listing is a line
    that starts with a bullet or a number.
    """
    anywhere = [each for each in keywords if not each.isascii()]
    plain = [each.lower() for each in keywords if each.isascii()]
    words = re.compile(rf"\b(?:{'|'.join(map(re.escape, plain))})\b") if plain else None

    def score(message: Message) -> int:
        text = message.text
        scored = (user if message.role == "user" else 0) + (call if message.calls else 0)
        if any(each in text for each in anywhere) or (words is not None and _has(text.lower(), plain, words)):
            scored += keyword
        if "```" in text:
            scored += code
        if _LISTING.search(text):
            scored += listing
        return scored

    return score


class Scores:
    """The messages of a growing conversation, scored. Each is looked at once.

    A turn is what the user says and the first reply to it; an assistant that speaks first is in the first turn.
    """

    __slots__ = ("_asked", "_first", "_score", "_turn", "_turns", "opening", "points")

    def __init__(self, score: Callable[[Message], int], turns: int, first: int) -> None:
        self._score, self._turns, self._first = score, turns, first
        self.forget()

    def forget(self) -> None:
        """Begin with nothing."""
        self.points: list[int] = []
        """What each message scores by itself, and for being in the first turn."""
        self.opening: list[bool] = []
        """Whether it is in one of the first `turns`."""
        self._turn, self._asked = 0, False

    def read(self, said: Messages) -> None:
        """Score what has been said since the last time."""
        for message in said[len(self.points) :]:
            begins = message.role == "user"
            replies = message.role == "assistant" and (self._asked or not self.points)
            self._turn += begins and not self._asked
            self._asked = begins or (self._asked and not replies)
            turn = max(self._turn, 1) if begins or replies else 0
            self.points.append(self._score(message) + (self._first if turn == 1 else 0))
            self.opening.append(0 < turn <= self._turns)


def taken(pieces: Iterable[Piece], room: float) -> set[int]:
    """Where those of the pieces start that are taken, in this order, while they fit into `room` tokens."""
    found = set()
    for piece in pieces:
        if piece.tokens <= room:
            found.add(piece.at)
            room -= piece.tokens
    return found


def without(messages: Messages, gone: Collection[str], summary: Message | None) -> Messages:
    """The messages without those of these ids, and the summary where the first of them stood, else at the end."""
    made: list[Span] = []
    for store, start, stop in messages.spans:
        for at in range(start, stop):
            if store[at].id not in gone:
                continue
            if at > start:
                made.append(Span(store, start, at))
            if summary is not None:
                made += Messages.of((summary,)).spans
                summary = None
            start = at + 1
        if start < stop:
            made.append(Span(store, start, stop))
    return Messages(made) + (() if summary is None else (summary,))


def _has(text: str, plain: Sequence[str], words: re.Pattern[str]) -> bool:
    """Whether one of the words is in the text. Plain search first: it is 20 times faster, and mostly says no."""
    return any(each in text for each in plain) and words.search(text) is not None


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
