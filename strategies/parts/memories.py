"""Messages that are not sent verbatim any more, as memories: texts that can be found again (000 §2.1, §3.3).

What retrieval (S4) and layered memory (S5) share: their common parameters, what is recent, what a memory is, its type
and importance, and the one system message in which memories are sent.
"""

from __future__ import annotations

import hashlib
import re
from bisect import bisect_left
from dataclasses import dataclass
from typing import Literal

import msgspec

from ...metrics.language import Language, is_decision, sentences, words
from ...metrics.values import values
from ...scenarios.model import Message, Role
from ...scenarios.view import Messages
from ..base import Context, StrategyContext
from ..events import OverBudget
from .fact_extraction import is_preference
from .passages import passages
from .units import Spoken, at_least

Place = Literal["start", "end"]

FORM: dict[Language, str] = {"zh": "[相关记忆]\n{lines}", "en": "[Relevant memories]\n{lines}"}
"""Ours, in the manner of the document's `[之前对话摘要]`: it gives no wording for memories."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recalling:
    """The parameters that `retrieval` and `layered` share; what they mean is said in `retrieval`."""

    limit: int = 10
    recent: int = 3
    slack: int = 0
    max_memory_tokens: int = 200
    passages: int = 8
    query_characters: int = 2000
    place: Place = "start"
    max_tokens: int | None = None
    memory_share: float = 0.2
    language: Language = "zh"

    def __post_init__(self) -> None:
        at_least(1, limit=self.limit, recent=self.recent, max_memory_tokens=self.max_memory_tokens)
        at_least(1, passages=self.passages, query_characters=self.query_characters, max_tokens=self.max_tokens)
        at_least(0, slack=self.slack)
        at_least(0, at_most=1, memory_share=self.memory_share)

    @property
    def budget(self) -> int | None:
        """Tokens that the messages sent may take."""
        return self.max_tokens


class Memory(msgspec.Struct, frozen=True, gc=False):
    """A message, or a passage of one."""

    source: str
    """The message's id."""
    role: Role
    text: str
    kind: Kind
    importance: float

    @property
    def line(self) -> str:
        """How it is written where memories are sent."""
        return f"{self.role}: {self.text}"


def remembered(message: Message, most_tokens: int, most: int, desk: StrategyContext) -> tuple[Memory, ...]:
    """The memories that a message becomes: its passages. None if it says nothing.

    Tool calls are part of the text, a line each: their arguments hold what was looked for.
    """
    text = "\n".join((message.text.strip(), *(f"{call.name} {call.arguments}" for call in message.calls))).strip()
    made = []
    for each in passages(text, most_tokens, most, desk.text_tokens):
        kind = kind_of(message.role, each)
        made.append(Memory(message.id, message.role, each, kind, importance_of(kind, message.role, each)))
    return tuple(made)


class Past:
    """A growing history, cut in two: the recent turns, and the memories of what was said before them.

    System messages are in neither: all of them are sent. A message is made into memories once. If what was said
    changes (a stage before this one rewrote it), the memories of the common part stay, and the rest is read again.
    """

    __slots__ = (
        "_desk",
        "_known",
        "_rules",
        "_spoken",
        "_users",
        "changed",
        "memories",
        "places",
        "room",
        "said",
        "start",
    )

    def __init__(self, desk: StrategyContext, rules: Recalling) -> None:
        self._desk, self._rules = desk, rules
        self._known: dict[str, tuple[Message, tuple[Memory, ...]]] = {}
        self._spoken = Spoken(desk)
        self._users: list[int] = []
        self.said = Messages()
        """All messages but the system's."""
        self.memories: list[Memory] = []
        self.places: list[int] = []
        """For each memory, where its message is in `said`."""
        self.changed = 0
        """The first of the memories that are not as they were before the last reading."""
        self.start = 0
        """Where the recent turns start in `said`."""
        self.room: int | None = None
        """Tokens that memories may take."""

    def read(self, history: Messages) -> None:
        """Bring everything up to date."""
        same = self._spoken.read(history)
        said = self.said = self._spoken.messages
        del self._users[bisect_left(self._users, same) :]
        self._users += [at for at, message in enumerate(said[same:], same) if message.role == "user"]
        start = self._recently()
        budget = self._rules.max_tokens
        if budget is not None and (start > 0 or self._desk.total(history) > budget):
            start = max(start, self._fitting(history, budget))
        common = min(same, start, self.start)
        self.changed = bisect_left(self.places, common)
        del self.memories[self.changed :], self.places[self.changed :]
        for at, message in enumerate(said[common:start], common):
            found = self._remembered(message)
            self.memories += found
            self.places += [at] * len(found)
        self.start = start

    @property
    def turn(self) -> str:
        """Which turn it is: the id of the newest user message; empty if no user spoke."""
        return self.said[self._users[-1]].id if self._users else ""

    def question(self) -> str:
        """What is searched for: the newest user message that says something; if no user spoke, the newest that does.

        Of a text longer than `query_characters` its two ends: the question stands at either.
        """
        characters = self._rules.query_characters
        places = reversed(self._users) if self._users else range(len(self.said) - 1, -1, -1)
        text = next((text for at in places if (text := self.said[at].text.strip())), "")
        half = characters // 2
        return text if len(text) <= characters else f"{text[:half]}\n{text[len(text) - half :]}"

    def sending(self, context: Context, memory: Message | None) -> Context:
        """System messages, the memory message, the recent turns. At the `end` it stands before the newest of these."""
        history, start = context.messages, self._spoken.place(self.start)
        head = self._desk.systems(history[:start])
        if memory is None:
            return context if len(head) == start else context.sending(self._desk.whole(head + history[start:]))
        newest = self._spoken.units.before(self._users[-1]) if self._users else 0
        at = start if self._rules.place == "start" else max(start, self._spoken.place(newest))
        return context.sending(self._desk.whole(head + history[start:at] + Messages.of((memory,)) + history[at:]))

    def _recently(self) -> int:
        """Where the recent turns start, moved to where a cut breaks nothing; 0 as long as there are no more."""
        past = len(self._users) - self._rules.recent
        past -= past % (self._rules.slack + 1)
        return self._spoken.units.before(self._users[past]) if past > 0 else 0

    def _fitting(self, history: Messages, budget: int) -> int:
        """The first unit from which all fits beside system messages and memories; the newest comes before memories."""
        share = int(budget * self._rules.memory_share)
        starts, total = self._spoken.units.starts, self._desk.total
        systems = total(self._desk.systems(history))
        left = budget - systems
        newest = total(self.said[starts[-1] :]) if starts else 0
        self.room = max(0, min(share, left - newest))
        if left < 0:
            self._desk.record(OverBudget("system messages alone are over the budget", systems, budget))
        elif newest > left:
            self._desk.record(OverBudget("the newest message does not fit", systems + newest, budget))
            self.room = min(share, left)
        if newest > left:
            return len(self.said)
        return starts[bisect_left(starts, self._desk.fit(self.said, left - self.room))] if starts else 0

    def _remembered(self, message: Message) -> tuple[Memory, ...]:
        known = self._known.get(message.id)
        if known is None or known[0] != message:
            known = message, remembered(message, self._rules.max_memory_tokens, self._rules.passages, self._desk)
            self._known[message.id] = known
        return known[1]


class Note:
    """One system message of lines. Its id is the strategy's name and a digest of the text: the same text is the same
    message, and it is made anew only when the text changes. Where a stage before has put that message there already,
    it is left out: no two messages of a context have one id.
    """

    __slots__ = ("_asked", "_desk", "_form", "_made", "_name")

    def __init__(self, desk: StrategyContext, name: str, form: str) -> None:
        self._desk, self._name, self._form = desk, name, form
        self._asked: tuple[list[str], int | None] = [], None
        self._made: tuple[Message | None, list[int]] = None, []

    def of(self, lines: list[str], room: int | None, history: Messages) -> tuple[Message | None, list[int]]:
        """The message with the lines that fit into `room` tokens, and their places; the first lines come first.

        None if no line fits, or if the history has this message. `{lines}` in the form is where they stand.
        """
        if self._asked != (lines, room):
            self._asked, self._made = (lines, room), self._written(lines, room)
        made, _ = self._made
        if made is not None and any(each.id == made.id for each in self._desk.systems(history)):
            return None, []
        return self._made

    def _written(self, lines: list[str], room: int | None) -> tuple[Message | None, list[int]]:
        kept = list(range(len(lines)))
        if room is not None:
            kept, left = [], room - self._desk.text_tokens(self._form)
            for at, line in enumerate(lines):
                tokens = self._desk.text_tokens(line) + 1
                if tokens <= left:
                    kept.append(at)
                    left -= tokens
        while kept:
            text = self._form.replace("{lines}", "\n".join(lines[at] for at in kept))
            made = Message(f"{self._name}:{hashlib.sha256(text.encode()).hexdigest()[:16]}", "system", text)
            if room is None or self._desk.tokens(made) <= room:
                return made, kept
            kept.pop()
        return None, []


Kind = Literal[
    "current_task",
    "tool_results",
    "session_context",
    "recent_decisions",
    "preference",
    "fact",
    "procedure",
    "session_summary",
]
IMPORTANCE: dict[Kind, float] = {
    "current_task": 5.0,
    "tool_results": 5.0,
    "session_context": 5.0,
    "recent_decisions": 7.0,
    "preference": 7.0,
    "fact": 5.5,
    "procedure": 6.0,
    "session_summary": 7.0,
}
"""0 to 10. 5.0 and 7.0 for a summary are the document's (000 §3.3.2, §3.2.2); it is silent on the rest."""
BY_USER, TRIVIAL, TRIVIAL_WORDS = 1.0, -3.0, 4
"""Said by the user: + 1. Fewer words than that ("ok", 好的): - 3."""

_SUMMARY = re.compile(
    r"\s*(?:\W{0,4})(?:总结|小结|摘要|综上|总之|summary|in summary|to sum up|to summari[sz]e)", re.IGNORECASE
)
_STEPS = re.compile(r"(?:^|\n)\s*(?:步骤|第[一二三四五六七八九十\d]步|step \d|\d{1,2}[.)、]\s)", re.IGNORECASE)
_ASKS = re.compile(
    r"[?？]|请|帮我|帮忙|麻烦|\bplease\b|\b(?:can|could|would) you\b|\bI (?:need|want|would like)\b", re.IGNORECASE
)


def kind_of(role: Role, text: str) -> Kind:
    """The type of a memory (000 §3.3.2), by rules: the first that holds.

    A tool's result; a text that begins as a summary; the user's preference; a decision, whoever states it; two or
    more numbered steps; a statement (not a question) with a number, a date, an identifier or a name in it; what the
    user asks for; anything else is the session's context.
    """
    if role == "tool":
        return "tool_results"
    if _SUMMARY.match(text):
        return "session_summary"
    if role == "user" and is_preference(text):
        return "preference"
    if is_decision(text):
        return "recent_decisions"
    if len(_STEPS.findall(text)) >= 2:
        return "procedure"
    if any(values(each) for each in sentences(text) if not each.endswith(("?", "？"))):
        return "fact"
    return "current_task" if role == "user" and _ASKS.search(text) else "session_context"


def importance_of(kind: Kind, role: Role, text: str) -> float:
    """0 to 10: by type, more if the user said it, less if hardly anything was said."""
    found = IMPORTANCE[kind] + (BY_USER if role == "user" else 0.0)
    return found + (TRIVIAL if len(words(text[:200])) < TRIVIAL_WORDS else 0.0)
