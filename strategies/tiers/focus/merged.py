"""`conversation_merge`: old stretches of the conversation become one message each (design document 004 §5.4)."""

from __future__ import annotations

from bisect import bisect_left
from typing import NamedTuple

from ....metrics.extract import extract
from ....metrics.grounding import said as spelled
from ....metrics.language import Language
from ....scenarios.model import Message
from ....scenarios.view import Messages
from ...base import Desk
from ...parts.newest import newest
from ...parts.spoken import Spoken
from .newest import fitted

FORM: dict[Language, str] = {"zh": "[合并的对话]\n{text}", "en": "[Merged conversation]\n{text}"}
READ = 20_000
"""Characters of a message that sentences are extracted from, from its start."""


class _Run(NamedTuple):
    """A stretch of the spoken messages."""

    stop: int
    """Where it ends."""
    merged: Message | None
    """What stands for it; None if nothing of it fits into its share."""
    tokens: int
    """Of that."""


class Merged:
    """The oldest stretches, as many as must, are sent as one system message each: what matters of them, extracted.

    The document has the name only. A stretch is units of at least `run` tokens together: what stands for it takes at
    most `ratio` of its tokens, heading included, and at most `run`. No model is asked, and a stretch is merged once:
    what stands for it stays as it is. If all but the newest are merged and it is still too much, the oldest merged ones
    go.
    """

    __slots__ = ("_desk", "_form", "_ratio", "_run", "_runs")

    def __init__(self, desk: Desk, run: int, ratio: float, language: Language) -> None:
        self._desk, self._run, self._ratio, self._form = desk, run, ratio, FORM[language]
        self._runs: list[_Run] = []

    def look(self, said: Messages, same: int) -> None:  # noqa: ARG002
        """Forget the stretches that are not as they were."""
        while self._runs and self._runs[-1].stop > same:
            self._runs.pop()

    def cut(self, history: Messages, spoken: Spoken, room: int) -> Messages:
        """System messages, what is merged, the rest."""
        runs = self._fewest(spoken, room)
        start = spoken.place(runs[-1].stop if runs else 0)
        rest = self._spoken(newest(self._desk, history, start).tail)
        merged = sum(run.tokens for run in runs)
        while runs and merged + rest > room:
            merged -= runs.pop(0).tokens
        head, tail = fitted(self._desk, history, spoken.messages[-1], start, room - merged)
        return head + Messages.of(tuple(run.merged for run in runs if run.merged is not None)) + tail

    def _fewest(self, spoken: Spoken, room: int) -> list[_Run]:
        """The oldest stretches that must be merged so that all fits, as far as it can."""
        said, starts = spoken.messages, spoken.units.starts
        self._whole(starts)
        left, start = self._desk.total(said), 0
        merged = count = 0
        while left + merged > room and (count < len(self._runs) or self._one_more(said, starts)):
            run = self._runs[count]
            left -= self._desk.total(said[start : run.stop])
            merged += run.tokens
            start, count = run.stop, count + 1
        return self._runs[:count]

    def _whole(self, starts: list[int]) -> None:
        """Forget stretches that a late result has joined with what comes after them."""
        for number, run in enumerate(self._runs):
            at = bisect_left(starts, run.stop)
            if at == len(starts) or starts[at] != run.stop:
                del self._runs[number:]
                break

    def _one_more(self, said: Messages, starts: list[int]) -> bool:
        """Merge the next stretch. False if there is none: the newest unit is never merged."""
        start = self._runs[-1].stop if self._runs else 0
        first = bisect_left(starts, start)
        for stop in starts[first + 1 :]:
            stretch = said[start:stop]
            tokens = self._desk.total(stretch)
            if tokens >= self._run:
                made = self._made(stretch, min(int(self._ratio * tokens), self._run))
                self._runs.append(_Run(stop, made, self._desk.tokens(made) if made is not None else 0))
                return True
        return False

    def _made(self, stretch: Messages, most: int) -> Message | None:
        """What stands for a stretch, in at most so many tokens."""
        empty = Message(f"focus:{stretch[-1].id}", "system", self._form)
        room = most - self._desk.tokens(empty)
        lines = [f"{message.role}: {spelled(message)[:READ]}" for message in stretch]
        while room > 0 and (text := extract(lines, room, self._desk.text_tokens)):
            made = Message(empty.id, "system", self._form.replace("{text}", text))
            if (over := self._desk.tokens(made) - most) <= 0:
                return made
            room -= over  # a text may have more tokens where it stands than alone
        return None

    def _spoken(self, messages: Messages) -> int:
        """Tokens of those that are not the system's."""
        return self._desk.total(messages) - self._desk.total(self._desk.systems(messages))
