"""`importance`: the units that score best, in the order they were said (design document 004 §5.4)."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ....metrics.grounding import said as spelled
from ....metrics.language import is_constraint, is_decision
from ....metrics.rows import Rows
from ....metrics.tfidf import Scores
from ....scenarios.model import Message
from ....scenarios.view import Messages
from ...base import StrategyContext
from ...parts.fact_extraction import is_preference
from ...parts.passages import scorer, without
from ...parts.search import WordSearch
from ...parts.units import Spoken

EMPHASISED, SAID = 1.0, 0.5
"""What the user decides, demands or prefers; anything else that the user says."""

_HEADING = re.compile(r"^#{1,6} ", re.MULTILINE)
_has_parts = scorer(user=0, call=0, keyword=0, code=1, listing=1, keywords=())


class ImportanceWeights(NamedTuple):
    """What each part of a score counts."""

    semantic: float
    recency: float
    emphasis: float
    structure: float


class Importance:
    """The messages of one conversation, each looked at once, and the best of them within a room.

    What the parts of a score are, each 0 to 1, where the document names them only:

    - semantic: the share of the newest user message's words that the message has, rare words weighing more;
    - recency: its place among the messages, from 0 for the first to 1 for the newest. Not its age: recordings without
      times have none, and after a night's pause all that was said before would be equally old;
    - emphasis: `EMPHASISED`, `SAID` or, for others than the user, 0. Recordings know of no favourites and copies;
    - structure: 1 with a heading, a list or a code block.

    A call and its results are one unit, with the highest of their scores. The newest unit stays, then the user message
    that opened its turn; then units are taken by score while they fit, of equal ones the later first. Where what is
    taken begins with the assistant, the user message that it answers is taken too if there is room, and otherwise it
    goes: providers refuse such requests.
    """

    __slots__ = ("_base", "_desk", "_index", "_read", "_result", "_rows", "_tokens", "_users", "_weights")

    def __init__(self, desk: StrategyContext, weights: ImportanceWeights, read: int) -> None:
        self._desk, self._weights, self._read = desk, weights, read
        self._index = WordSearch()
        self._rows: Rows[np.int64] = Rows(np.int64)
        self._base: Rows[np.float64] = Rows(np.float64)
        """What does not change of each message's score."""
        self._tokens: Rows[np.int64] = Rows(np.int64)
        self._result: Rows[np.bool_] = Rows(np.bool_)
        """Whether each is a tool's result. A unit that begins with one has lost its call: it is never taken."""
        self._users: list[int] = []
        """Places of the user messages."""

    def look(self, said: Messages, same: int) -> None:
        """Read the messages from `same` on; those before are as they were."""
        for rows in (self._rows, self._base, self._tokens, self._result):
            rows.size = min(same, rows.size)
        known = self._rows.size
        new = list(said[known:])
        del self._users[bisect_left(self._users, known) :]
        self._users += [at for at, message in enumerate(new, known) if message.role == "user"]
        texts = [self._ends(spelled(message)) for message in new]
        weights = self._weights
        base = [weights.emphasis * _emphasis(message.role, text) for message, text in zip(new, texts, strict=True)]
        shaped = [weights.structure * _structure(self._ends(message.text)) for message in new]
        self._rows.add(self._index.rows(texts))
        self._base.add(np.array(base, np.float64) + np.array(shaped, np.float64))
        self._result.add(np.array([message.role == "tool" for message in new], np.bool_))
        self._tokens.add(np.array([self._desk.tokens(message) for message in new], np.int64))

    def cut(self, history: Messages, spoken: Spoken, room: int) -> Messages:
        """System messages, and the units that are taken, in their order."""
        said, starts = spoken.messages, spoken.units.starts
        tokens = np.add.reduceat(self._tokens.all, starts).tolist()
        scores = np.where(self._result.all[starts], -1.0, np.maximum.reduceat(self.scores(said), starts))
        stay = _Units(starts, self._users, tokens, scores).taken(room)
        sizes = np.diff([*starts, len(said)])
        gone = {message.id for message, stays in zip(said, np.repeat(stay, sizes).tolist(), strict=True) if not stays}
        return without(history, gone, None)

    def scores(self, said: Messages) -> Scores:
        """The score of each message. Rounded: what differs beyond 6 decimals differs between machines."""
        similar = self._index.scores(self._question(said))[self._rows.all]
        recent = np.arange(1, len(said) + 1) / len(said)
        found: Scores = self._weights.semantic * similar + self._weights.recency * recent + self._base.all
        return found.round(6)

    def _question(self, said: Messages) -> str:
        """The newest user message that says something; if no user spoke, the newest that does."""
        places = reversed(self._users) if self._users else range(len(said) - 1, -1, -1)
        return self._ends(next((text for at in places if (text := said[at].text).strip()), ""))

    def _ends(self, text: str) -> str:
        """The two ends of a text that is longer than what is read of it."""
        half = self._read // 2
        return text if len(text) <= self._read else f"{text[:half]}\n{text[len(text) - half :]}"


class _Units:
    """The units of a history, and which of them are taken."""

    __slots__ = ("_scores", "_starts", "_tokens", "_users")

    def __init__(self, starts: list[int], users: list[int], tokens: list[int], scores: Scores) -> None:
        self._starts, self._users, self._tokens, self._scores = starts, users, tokens, scores

    def taken(self, room: int) -> list[bool]:
        """Whether each is taken. The newest must fit."""
        stay = [False] * len(self._starts)
        newest = len(stay) - 1
        opening = self._opening(newest)
        first = (newest,) if opening is None else (newest, opening)
        for at in (*first, *self._best_first()):
            if not stay[at] and self._tokens[at] <= room:
                stay[at] = True
                room -= self._tokens[at]
        return self._begun(stay, room)

    def _best_first(self) -> list[int]:
        places: NDArray[np.int64] = np.flatnonzero(self._scores >= 0)
        found: list[int] = places[np.lexsort((-places, -self._scores[places]))].tolist()
        return found

    def _begun(self, stay: list[bool], room: int) -> list[bool]:
        """With a user message first, as far as that can be had."""
        first = stay.index(True)
        while (opening := self._opening(first)) is not None:
            if self._tokens[opening] <= room:
                stay[opening] = True
                break
            if first == len(stay) - 1:
                break
            stay[first] = False
            room += self._tokens[first]
            first = stay.index(True)
        return stay

    def _opening(self, unit: int) -> int | None:
        """The unit of the user message that opened the turn that this one goes on with; None if none is before it."""
        before = bisect_right(self._users, self._starts[unit])
        found = bisect_right(self._starts, self._users[before - 1]) - 1 if before else unit
        return None if found == unit else found


def _emphasis(role: str, text: str) -> float:
    if role != "user":
        return 0.0
    return EMPHASISED if is_preference(text) or is_decision(text) or is_constraint(text) else SAID


def _structure(text: str) -> bool:
    return _has_parts(Message("", "user", text)) > 0 or _HEADING.search(text) is not None
