"""S3, `smart`: what matters stays as it is, a summary stands for the rest of the middle (design document 000 §2.2)."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from typing import ClassVar, Literal

from ..metrics.language import Language
from ..scenarios.model import Message
from ..scenarios.view import Messages, shared
from .base import Context, ModelError, StrategyContext, View
from .events import Failed, OverBudget, Summarised
from .parts.passages import KEYWORDS, Piece, Scores, scorer, taken, without
from .parts.summarize import Summariser
from .parts.units import Late, Spoken, at_least

PROMPTS: dict[Language, str] = {
    "zh": """请简洁地总结以下对话的关键信息，保留：
1. 重要的决策和结论
2. 用户的偏好和要求
3. 关键的数据或事实

{conversation}""",
    "en": """Summarise concisely what matters in the following conversation. Keep:
1. Important decisions and conclusions
2. The user's preferences and requirements
3. Key figures and facts

{conversation}""",
}
"""000 §2.3."""

LEVELS = ("critical", "high", "medium", "low")


@dataclass(frozen=True, slots=True)
class Smart:
    """Messages are scored. The first turns, the last messages and what scores high stay; a summary stands for the rest.

    The history may take the `window` but for `system` tokens and the share `memory` of it: 78 000 tokens of 100 000.
    Once it takes more than `threshold` of that, the middle is gone through: what is protected and what has at least the
    level `keep` stays; of the rest the best stay while they fit, the others are summarised.

    A message scores `first` in the first turn or `recent` among the last messages, `user` if the user says it, `call`
    if it makes tool calls, and once each for one of the `keywords`, for a `code` block, for a `listing`. `levels` are
    the least scores of a critical, high, medium and low message; what is below is trivial. A tool call and its results
    stay or go together, with the highest of their scores.

    Where the document is silent:

    - The best of the rest fit into `target` of the history's budget, and nothing is done until there is enough to
      summarise to get from `threshold` to `target`. Without a gap between the two every call would summarise a
      message, and so rewrite the context and lose the prompt cache. What was summarised stays so.
    - A turn is a user message and the first reply to it. The hundreds of calls that an agent may make for one message
      are not all its first turn.
    - If what must stay is over the budget, it is taken by score, then newest first, into `threshold` of the budget,
      the last message before all. The others are summarised too, and OverBudget is recorded. A last message that does not
      fit is not sent at this call.
    - If the model fails, nothing is replaced; over the budget, the best that fit are sent, and it is asked again at
      the next call. System messages over their share shrink the history's: all that is sent is never over `window`,
      but for system messages that are so alone.
    """

    window: int = 100_000
    system: int = 2000
    memory: float = 0.2
    threshold: float = 0.7
    target: float = 0.5
    first_turns: int = 2
    last_messages: int = 6
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
    max_summary_tokens: int = 500
    max_input_tokens: int | None = None
    temperature: float = 0.3
    language: Language = "zh"
    summariser: str = ""

    copyable: ClassVar[bool] = True
    source: ClassVar[str] = "000 §2.2"
    fails: ClassVar[str] = "what matters is said in plain words: no keyword, code or list, and not at either end"

    def __post_init__(self) -> None:
        at_least(1, window=self.window, last_messages=self.last_messages)
        at_least(0, system=self.system, first_turns=self.first_turns)
        at_least(0, below=1, memory=self.memory)
        at_least(0, at_most=1, threshold=self.threshold)
        if not all(each.strip() for each in self.keywords):
            raise ValueError("keywords must not be empty: an empty one is in every message")
        self._summariser()
        if not 0 < self.target < self.threshold:
            raise ValueError(f"target must be above 0 and below threshold, {self.threshold}, not {self.target}")
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

    @property
    def least(self) -> int:
        """The score from which a message always stays."""
        return self.levels[LEVELS.index(self.keep)]

    def start(self, desk: StrategyContext) -> View:
        return _Compression(self, desk, self._summariser()).view

    def _summariser(self) -> Summariser:
        return Summariser(
            "smart",
            PROMPTS[self.language],
            self.language,
            self.max_summary_tokens,
            self.max_input_tokens,
            self.temperature,
            self.summariser,
        )


class _Compression:
    """One conversation under `smart`: what is summarised so far, and what is sent."""

    __slots__ = (
        *("_answered", "_base", "_built", "_desk", "_gone", "_late", "_left_over", "_scanned"),
        *("_scores", "_smart", "_spoken", "_summariser", "_summary", "_systems", "_wait"),
    )

    def __init__(self, smart: Smart, desk: StrategyContext, summariser: Summariser) -> None:
        self._smart, self._desk, self._summariser = smart, desk, summariser
        self._answered: tuple[Context, Context] | None = None
        score = scorer(smart.user, smart.call, smart.keyword, smart.code, smart.listing, smart.keywords)
        self._scores = Scores(score, smart.first_turns, smart.first)
        self._spoken = Spoken(desk)
        self._left_over: list[int] = []
        """Where the pieces start that the last look left, of the spoken messages before `_scanned`."""
        self._scanned = 0
        self._gone: set[str] = set()
        self._late = Late(desk)
        self._summary: Message | None = None
        self._systems = 0
        """Tokens of the system messages."""
        self._wait = 0.0
        """Tokens of the history below which there is too little to summarise."""
        self._built = self._base = Messages()
        """The history up to the last summarised message, and what is sent of it."""

    def view(self, context: Context) -> Context:
        """What to send. Asked again with nothing said since, it answers the same: no other round is made for it."""
        if self._answered is None or self._answered[0] != context:
            self._answered = (context, self._view(context))
        return self._answered[1]

    def _view(self, context: Context) -> Context:
        smart, desk, history = self._smart, self._desk, context.messages
        self._read(history)
        self._systems = systems = desk.total(desk.systems(history))
        left = min(smart.history, smart.window - systems)
        sent = self._base + history[len(self._built) :]
        spent = desk.total(sent) - systems
        told = False
        if spent > left or spent > max(smart.threshold * left, self._wait):
            told = self._compress(history, spent, left)
            sent = self._base + history[len(self._built) :]
            spent = desk.total(sent) - systems
        if spent > left:
            if not told:
                self._refuse(spent, left)
            sent = self._best(sent, left)
        return context.sending(desk.whole(sent)) if self._gone or spent > left else context

    def _read(self, history: Messages) -> None:
        same = self._spoken.read(history)
        self._late.read(message for message in self._spoken.messages[same:] if message.id not in self._gone)
        if same < len(self._scores.points):  # a stage before this one has changed what was said
            self._scores.forget()
            self._left_over, self._scanned = [], 0
        if shared(self._built, history) < len(self._built):
            # What is summarised stays so, also if a stage before this one has dropped it since.
            last = max((at + 1 for at, message in enumerate(history) if message.id in self._gone), default=0)
            self._built = history[: max(last, self._spoken.place(0) if self._summary else 0)]
            self._base = without(self._built, self._gone, self._summary)

    def _compress(self, history: Messages, spent: int, left: int) -> bool:
        """Summarise what need not stay, if it is worth it. True if it recorded why the budget was not kept."""
        smart, desk = self._smart, self._desk
        reserve = smart.max_summary_tokens + desk.tokens(self._summariser.message("", ""))
        if left <= reserve:
            return False
        pieces = self._pieces()
        must = [piece for piece in pieces if piece.stays == "must"]
        needed = reserve + sum(piece.tokens for piece in must)
        loose = reserve + sum(piece.tokens for piece in pieces) - needed
        worth = (smart.threshold - smart.target) * left
        if spent <= left and loose < worth:
            self._wait = spent + worth - loose
            return False
        if over := needed > left:
            self._refuse(needed, left)
            stay = taken(sorted(must, key=Piece.rank), smart.threshold * left - reserve)
        else:
            stay = {piece.at for piece in must}
            rest = sorted((piece for piece in pieces if piece.stays == "may"), key=Piece.rank)
            stay |= taken(rest, smart.target * left - needed)
        gone = [piece for piece in pieces if piece.at not in stay and not piece.newest]
        failed = bool(gone) and not self._summarise(history, gone)
        return over or failed

    def _summarise(self, history: Messages, pieces: list[Piece]) -> bool:
        """Have the summary stand for these as well."""
        gone = [message for piece in pieces for message in piece.messages]
        try:
            text = self._summariser.write(self._desk, self._summary, gone)
        except ModelError as error:
            self._desk.record(Failed("summary", str(error), "what it would have replaced is kept, while it fits"))
            return False
        names = [message.id for message in gone]
        before = [] if self._summary is None else [self._summary.id]
        self._desk.record(Summarised(tuple(names), text, by=self._summariser.name))
        self._summary = self._summariser.message(names[-1], text)
        self._gone.update(names)
        self._late.gone(gone)
        starts = {piece.at for piece in pieces}
        self._left_over = [at for at in self._left_over if at not in starts]
        self._wait = 0.0
        upto = max(len(self._built), self._spoken.place(pieces[-1].stop - 1) + 1)
        self._base = without(self._base + history[len(self._built) : upto], {*names, *before}, self._summary)
        self._built = history[:upto]
        return True

    def _best(self, sent: Messages, left: int) -> Messages:
        """What of this fits at this call: the newest piece, the summary, then what must stay, then the rest."""
        pieces = sorted(self._pieces(), key=lambda piece: (not piece.newest, piece.stays != "must", piece.rank()))
        stay = taken(pieces[:1], left)
        left -= sum(piece.tokens for piece in pieces[:1] if stay)
        out = set()
        if self._summary is not None:
            if self._desk.tokens(self._summary) <= left:
                left -= self._desk.tokens(self._summary)
            else:
                out.add(self._summary.id)
        stay |= taken(pieces[1:], left)
        out |= {message.id for piece in pieces if piece.at not in stay for message in piece.messages}
        return without(sent, out, None)

    def _refuse(self, needed: int, left: int) -> None:
        why = "what must stay of the history is over its budget"
        self._desk.record(OverBudget(why, self._systems + needed, self._systems + left))

    def _pieces(self) -> list[Piece]:
        """What is not summarised, in order. Looks at what was left over the last time, and at what was said since."""
        smart, said, units = self._smart, self._spoken.messages, self._spoken.units
        self._scores.read(said)
        tail = len(said) - smart.last_messages
        since = bisect_left(units.starts, units.before(self._scanned))  # a late result may have joined an earlier unit
        pieces = []
        for start in sorted({*map(units.before, self._left_over), *units.starts[since:]}):
            after = bisect_right(units.starts, start)
            stop = units.starts[after] if after < len(units.starts) else len(said)
            here = tuple(message for message in said[start:stop] if message.id not in self._gone)
            if not here:
                continue
            points = self._scores.points
            score = max(points[at] + (smart.recent if at >= tail else 0) for at in range(start, stop))
            stays: Literal["must", "may", "never"] = "may"
            if stop == len(said):
                stays = "must"
            elif len(here) < stop - start:  # a late result: its call is summarised
                stays = "never"
            elif any(self._scores.opening[start:stop]) or stop > tail or score >= smart.least:
                stays = "must"
            tokens = sum(map(self._desk.tokens, here))
            pieces.append(Piece(start, stop, here, tokens, score, stays, stop == len(said)))
        self._left_over, self._scanned = [piece.at for piece in pieces], len(said)
        return pieces
