"""S3, `smart`: what matters stays as it is, a summary replaces the rest of the middle (design document 000 §2.2)."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple

from ctxbench.scenarios.model import Message
from ctxbench.scenarios.spec import (
    NonNegativeFloat,
    NonNegativeInt,
    PositiveInt,
    Share,
    ShareBelowOne,
    ShareWithoutEnds,
)
from ctxbench.scenarios.view import Messages, shared_prefix

from .base import Context, StrategyContext, View, texts
from .events import OverBudget, Summarised
from .parts.language import LanguageSetting
from .parts.summarize import Summariser
from .parts.units import Dialogue, OrphanedResults, room_beside_systems, without

# The Chinese is that of 000 §2.3.
PROMPTS = texts("smart_prompt")

KEYWORDS = (
    *("决定", "确定", "最终"),  # 000 §2.2
    *("decide", "decided", "decision", "confirm", "confirmed", "final", "finally"),
)
LEVELS = ("critical", "high", "medium", "low")


@dataclass(frozen=True, slots=True)
class Smart:
    """Messages are scored: the first turns, the last messages and high scores stay, a summary replaces the rest.

    The history may take the `window` less `system` tokens and the share `memory`: 78 000 tokens of 100 000. Once it
    takes more than `threshold` of that, protected messages and those of at least the level `keep` stay. Of the others
    the best stay while they fit, and the rest is summarised.

    A message scores `first` in the first turn or `recent` among the last messages, `user` if the user wrote it, `call`
    if it makes tool calls, and once each for one of the `keywords`, for a `code` block, for a `listing`. `levels` are
    the least scores of a critical, high, medium and low message; anything below is trivial. A tool call and its results
    stay or go together, with the highest of their scores. The summary's parameters and `language` are as in `summary`.

    Where the design is silent:

    - The best of the others fit into `target` of the history's budget, and nothing happens until there is enough to
      summarise to get from `threshold` to `target`. Without a gap between the two every call would summarise a
      message, and so rewrite the context and lose the prompt cache. Summarised messages stay summarised.
    - A turn is a user message and the first reply to it. The hundreds of calls that an agent may make for one message
      are not all its first turn.
    - If the protected messages are over the budget, they are taken by score, then newest first, into `threshold` of
      the budget, the last message before all. The others are summarised too, and OverBudget is recorded. A last message
      that does not fit is not sent at this call.
    - If the model fails, nothing is replaced. Over the budget the best that fit are sent, and the next call tries
      again. System messages over their share shrink the history's share: everything sent is never over `window`.
      System messages that alone are over it are an error.
    """

    window: PositiveInt = 100_000
    system: NonNegativeInt = 2000
    memory: ShareBelowOne = 0.2
    threshold: Share = 0.7
    target: ShareWithoutEnds = 0.5
    first_turns: NonNegativeInt = 2
    last_messages: PositiveInt = 6
    first: int = 30
    recent: int = 25
    user: int = 10
    call: int = 20
    keyword: int = 15
    code: int = 12
    listing: int = 8
    keywords: tuple[str, ...] = KEYWORDS
    levels: tuple[int, int, int, int] = (50, 35, 20, 10)
    keep: Literal["critical", "high", "medium", "low"] = "high"
    max_summary_tokens: PositiveInt = 500
    max_input_tokens: PositiveInt | None = None
    temperature: NonNegativeFloat = 0.3
    language: LanguageSetting = "auto"
    summariser: str = ""

    copyable: ClassVar[bool] = True
    fails: ClassVar[str] = "an important message has no keyword, code or list, and is at neither end"
    family: ClassVar[str] = "summary"

    def __post_init__(self) -> None:
        if not all(keyword.strip() for keyword in self.keywords):
            raise ValueError("keywords must not be empty: an empty one is in every message")
        if self.target >= self.threshold:
            raise ValueError(f"target must be below threshold, {self.threshold}, not {self.target}")
        if self.history < 1:
            shares = f"system={self.system} and memory={self.memory} of it"
            raise ValueError(f"window={self.window} leaves no tokens for the history beside {shares}")
        if self.max_summary_tokens >= self.target * self.history:
            raise ValueError(
                f"max_summary_tokens={self.max_summary_tokens} does not fit window={self.window}: it must be below "
                f"{self.target * self.history:.0f}, target={self.target} of the {self.history} tokens of the history"
            )
        if list(self.levels) != sorted(self.levels, reverse=True):
            raise ValueError(f"levels go from critical down to low, not {self.levels}")

    @property
    def budget(self) -> int:
        """Tokens that all messages sent never exceed."""
        return self.window

    @property
    def history(self) -> int:
        """Tokens that the history may take, summary included, system messages aside."""
        return self.window - self.system - int(self.window * self.memory)

    def start(self, services: StrategyContext) -> View:
        return _Compression(self, services).view


LISTING = re.compile(r"^[ \t]*(?:[-*+•][ \t]|\d{1,3}(?:[.)][ \t]|、))", re.MULTILINE)


class Piece(NamedTuple):
    """Messages that can stay or go together, with their score."""

    at: int  # place of its first message in the dialogue
    stop: int
    messages: tuple[Message, ...]
    tokens: int
    score: int
    stays: Literal["must", "may", "never"]
    newest: bool

    def rank(self) -> tuple[bool, int, int]:
        """Return the sort key, best first: the newest piece, then the highest score, then the later."""
        return not self.newest, -self.score, -self.at


def fitting(pieces: Iterable[Piece], room: float) -> set[int]:
    """Take the pieces in this order, each that still fits into `room` tokens. Return their places."""
    places = set()
    for piece in pieces:
        if piece.tokens <= room:
            places.add(piece.at)
            room -= piece.tokens
    return places


class MessageScores:
    """Scores of the messages of a growing conversation, each read once, in time linear in its text.

    English keywords match as whole words in any case, others anywhere. A code block has a fence; a listing is a line
    that starts with a bullet or a number. A turn is a user message and the first reply to it; an assistant that speaks
    first is in the first turn.
    """

    def __init__(self, smart: Smart) -> None:
        self._smart = smart
        self._anywhere = [word for word in smart.keywords if not word.isascii()]
        self._plain = [word.lower() for word in smart.keywords if word.isascii()]
        self._pattern = re.compile(rf"\b(?:{'|'.join(map(re.escape, self._plain))})\b")
        self.forget()

    def forget(self) -> None:
        self.points: list[int] = []
        """Score of each message by itself, and for being in the first turn."""
        self.opening: list[bool] = []
        """Whether the message is in one of the first `turns`."""
        self._turn, self._awaits_reply = 0, False

    def read(self, messages: Messages) -> None:
        """Score the messages that are new since the last reading."""
        for message in messages[len(self.points) :]:
            # user, user, assistant, tool, assistant, user are in turns 1, 1, 1, none, none, 2: two messages in a row
            # are one turn, and only the first reply belongs to it.
            begins = message.role == "user"
            replies = message.role == "assistant" and (self._awaits_reply or not self.points)
            # Several user messages in a row are one turn.
            self._turn += begins and not self._awaits_reply
            self._awaits_reply = begins or (self._awaits_reply and not replies)
            turn = max(self._turn, 1) if begins or replies else 0
            self.points.append(self._score(message) + (self._smart.first if turn == 1 else 0))
            self.opening.append(0 < turn <= self._smart.first_turns)

    def _score(self, message: Message) -> int:
        """Return the score of a message by itself."""
        smart, text, lower = self._smart, message.text, message.text.lower()
        has_keyword = any(word in text for word in self._anywhere)
        # Plain search first: it is 20 times faster than the pattern, and mostly says no.
        if not has_keyword and any(word in lower for word in self._plain):
            has_keyword = self._pattern.search(lower) is not None
        points = (smart.user if message.role == "user" else 0) + (smart.call if message.calls else 0)
        points += (smart.keyword if has_keyword else 0) + (smart.code if "```" in text else 0)
        return points + (smart.listing if LISTING.search(text) else 0)


class _Compression:
    """One conversation under `smart`: which messages are summarised so far, and what is sent."""

    def __init__(self, smart: Smart, services: StrategyContext) -> None:
        self._smart, self._services = smart, services
        self._summariser = Summariser.of(smart, "smart", instructions=PROMPTS)
        self._answer: tuple[Context, Context] | None = None
        self._scores = MessageScores(smart)
        self._dialogue = Dialogue(services)
        # Start of each unsummarised piece among the first `_scanned` dialogue messages.
        self._left_over: list[int] = []
        self._scanned = 0
        # Ids of the summarised messages.
        self._summarised: set[str] = set()
        self._orphans = OrphanedResults(services)
        self._summary: Message | None = None
        # Tokens of the system messages.
        self._systems = 0
        # Tokens of the history below which there is too little to summarise.
        self._wait = 0.0
        # The history up to the last summarised message, and what is sent of it.
        self._built = self._base = Messages()

    def view(self, context: Context) -> Context:
        """Return what to send. The same context again has the same answer, without another summary."""
        if self._answer is None or self._answer[0] != context:
            self._answer = (context, self._view(context))
        return self._answer[1]

    def _view(self, context: Context) -> Context:
        smart, services, history = self._smart, self._services, context.messages
        self._read(history)
        beside = room_beside_systems(services, history, smart.window)
        self._systems = systems = smart.window - beside
        left = min(smart.history, beside)
        sent = self._base + history[len(self._built) :]
        spent = services.total(sent) - systems
        recorded = False
        if spent > left or spent > max(smart.threshold * left, self._wait):
            recorded = self._compress(history, spent, left)
            sent = self._base + history[len(self._built) :]
            spent = services.total(sent) - systems
        if spent > left:
            if not recorded:
                self._record_over_budget(spent, left)
            sent = self._best(sent, left)
        return context.sending(services.whole(sent)) if self._summarised or spent > left else context

    def _read(self, history: Messages) -> None:
        self._summariser.language.read(history)
        same = self._dialogue.read(history)
        self._orphans.read(message for message in self._dialogue.messages[same:] if message.id not in self._summarised)
        if same < len(self._scores.points):  # a stage before this one has rewritten messages
            self._scores.forget()
            self._left_over, self._scanned = [], 0
        if shared_prefix(self._built, history) < len(self._built):
            # Summarised messages stay so, even if a stage before this one has dropped them since.
            last = max((at + 1 for at, message in enumerate(history) if message.id in self._summarised), default=0)
            self._built = history[: max(last, self._dialogue.place(0) if self._summary else 0)]
            self._base = without(self._built, self._summarised, self._summary)

    def _compress(self, history: Messages, spent: int, left: int) -> bool:
        """Summarise what need not stay, if that saves enough. Returns whether an event explains a broken budget."""
        smart, services = self._smart, self._services
        reserve = smart.max_summary_tokens + services.tokens(self._summariser.message("", ""))
        if left <= reserve:
            return False
        pieces = self._pieces()
        must = [piece for piece in pieces if piece.stays == "must"]
        needed = reserve + sum(piece.tokens for piece in must)
        # The reserve is in `needed`, too, so this is the tokens of all pieces that need not stay.
        loose = reserve + sum(piece.tokens for piece in pieces) - needed
        worth = (smart.threshold - smart.target) * left
        if spent <= left and loose < worth:
            # At best all that comes from now on is loose: below this many tokens looking again cannot pay.
            self._wait = spent + worth - loose
            return False
        if over := needed > left:
            self._record_over_budget(needed, left)
            stay = fitting(sorted(must, key=Piece.rank), smart.threshold * left - reserve)
        else:
            stay = {piece.at for piece in must}
            rest = sorted((piece for piece in pieces if piece.stays == "may"), key=Piece.rank)
            stay |= fitting(rest, smart.target * left - needed)
        chosen = [piece for piece in pieces if piece.at not in stay and not piece.newest]
        failed = bool(chosen) and not self._summarise(history, chosen)
        return over or failed

    def _summarise(self, history: Messages, pieces: list[Piece]) -> bool:
        """Merge the pieces into the summary. False if the model failed."""
        messages = [message for piece in pieces for message in piece.messages]
        text = self._summariser.write(self._services, self._summary, messages)
        if text is None:
            return False
        names = [message.id for message in messages]
        before = [] if self._summary is None else [self._summary.id]
        self._services.record(Summarised(tuple(names), text, by=self._summariser.name))
        self._summary = self._summariser.message(names[-1], text)
        self._summarised.update(names)
        self._orphans.note_summarised(messages)
        starts = {piece.at for piece in pieces}
        self._left_over = [at for at in self._left_over if at not in starts]
        self._wait = 0.0
        # Up to the last summarised message in the history's places, system messages between included. What follows is
        # the history's own spans again, so later calls join it without going through what is built.
        upto = max(len(self._built), self._dialogue.place(pieces[-1].stop - 1) + 1)
        self._base = without(self._base + history[len(self._built) : upto], {*names, *before}, self._summary)
        self._built = history[:upto]
        return True

    def _best(self, sent: Messages, left: int) -> Messages:
        """Return what fits at this call: the newest piece, the summary, then what must stay, then the rest."""
        pieces = sorted(self._pieces(), key=lambda piece: (not piece.newest, piece.stays != "must", piece.rank()))
        stay = fitting(pieces[:1], left)
        left -= sum(piece.tokens for piece in pieces[:1] if stay)
        out = set()
        if self._summary is not None:
            if self._services.tokens(self._summary) <= left:
                left -= self._services.tokens(self._summary)
            else:
                out.add(self._summary.id)
        stay |= fitting(pieces[1:], left)
        out |= {message.id for piece in pieces if piece.at not in stay for message in piece.messages}
        return without(sent, out, None)

    def _record_over_budget(self, needed: int, left: int) -> None:
        why = "what must stay of the history is over its budget"
        self._services.record(OverBudget(why, self._systems + needed, self._systems + left))

    def _pieces(self) -> list[Piece]:
        """Return the unsummarised pieces in order: those left over from the last look, and the new ones."""
        smart, messages, units = self._smart, self._dialogue.messages, self._dialogue.units
        self._scores.read(messages)
        tail, least = len(messages) - smart.last_messages, smart.levels[LEVELS.index(smart.keep)]
        since = bisect_left(units.starts, units.before(self._scanned))  # a late result may have joined an earlier unit
        pieces = []
        for start in sorted({*map(units.before, self._left_over), *units.starts[since:]}):
            _, stop = units.around(start)
            here = tuple(message for message in messages[start:stop] if message.id not in self._summarised)
            if not here:
                continue
            points = self._scores.points
            # `recent` is not stored with the points: it passes on as the conversation grows.
            score = max(points[at] + (smart.recent if at >= tail else 0) for at in range(start, stop))
            stays: Literal["must", "may", "never"] = "may"
            if stop == len(messages):
                stays = "must"
            elif len(here) < stop - start:  # a late result: its call is summarised
                stays = "never"
            elif any(self._scores.opening[start:stop]) or stop > tail or score >= least:
                stays = "must"
            tokens = sum(map(self._services.tokens, here))
            pieces.append(Piece(start, stop, here, tokens, score, stays, stop == len(messages)))
        self._left_over, self._scanned = [piece.at for piece in pieces], len(messages)
        return pieces
