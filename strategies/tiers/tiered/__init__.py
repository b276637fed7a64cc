"""S9, `tiered`: Focus, Working, Archive and RAG together (design document 004), and one conversation under it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import islice
from math import inf
from typing import ClassVar

from msgspec.structs import replace

from ctxbench.metrics.grounding import named
from ctxbench.metrics.values import occurs
from ctxbench.scenarios.errors import MissingExtra, SpecError
from ctxbench.scenarios.model import Message, Tool
from ctxbench.scenarios.view import Messages, Span

from ...base import Context, StrategyContext, View
from ...events import Recalled
from ...parts.passages import both_ends
from ...parts.units import Dialogue
from ..focus import Focus, Focused, FocusSession
from ..jobs import Trigger
from ..rag import RagRules
from ..working.belady import Belady
from ..working.policies import parse, text_of
from .tiers import ARCHIVE, FOCUS, RAG, WORKING, TieredSettings, Tiers

QUERY = 400  # characters of a query, half from each end of the message
SLACK = 32  # recalled messages may leave 1 / SLACK of the limit unused; beyond that Focus fills the rest
READ, VALUES = 4_000, 50
"""Characters of a message that are searched for values, half from each end, and the most values."""
_TRIGGERS = {WORKING: Trigger.FOCUS_REFERENCE, ARCHIVE: Trigger.CACHE_MISS, RAG: Trigger.EXPLICIT_ACCESS}


Units = dict[int, float | None]  # search score by start of the unit; None = the unit was named


class TieredSession:
    """One conversation: the messages that Focus sends, and the messages recalled from below.

    Messages similar to the newest user message are searched for once a turn; messages that new ones quote or name are
    looked up at every call. Recalled messages are sent unchanged in their old place, calls with their results. They
    stay until the turn is over, so that the start of the context does not change at every call.
    """

    def __init__(self, rules: TieredSettings, focus: FocusSession, tiers: Tiers, services: StrategyContext) -> None:
        self._rules, self._focus, self.tiers, self._services = rules, focus, tiers, services
        self._dialogue = Dialogue(services)
        self._messages: list[Message] = []
        # All messages but the system's, as a list because indexing spans is slower, with their tokens and texts.
        self._sizes: list[int] = []
        self._texts: list[str] = []
        self._places: dict[str, int] = {}  # place of each message in that list
        self._last: tuple[Messages, tuple[Tool, ...], Messages] | None = None

    def view(self, context: Context) -> Context:
        """Return the context to send. The same history gives the same context."""
        history, tools = context.messages, context.tools
        if self._last is None or self._last[:2] != (history, tools):
            self._last = history, tools, self._compose(history, tools)
        sent = self._last[2]
        return context if sent == history else context.sending(sent)

    def _compose(self, history: Messages, tools: tuple[Tool, ...]) -> Messages:
        now = self.tiers.tick(self._services.now)
        new = self._read(history, now)
        request = self._focus.send(history, tools, self._rules.recall)
        here, units = _ids(request), Units()
        if request.over_budget is None and request.messages is not history:
            self._look_up(new, request.messages, here)
            units = self._units(history, here, min(self._rules.recall, self._rules.limit - request.used))
            needed = self._tokens(units, here)
            if self._rules.recall - needed > self._rules.limit // SLACK:
                request = self._focus.send(history, tools, needed)
                here = _ids(request)
                units = self._start_with_user(
                    history, units, here, self._rules.limit - request.used - self._tokens(units, here)
                )
        self.tiers.keep(here, now)
        # What is below and Focus itself sends is read: that counts as a use, but not as a hit.
        fresh = [id for id in here if id in self.tiers and id not in self.tiers.loans.sent]
        for id in sorted(fresh, key=self._places.__getitem__):
            self.tiers.read(id, Trigger.FOCUS_REFERENCE, now, asked=False)
        for id in sorted(filter(self.tiers.lost, here & self._places.keys()), key=self._places.__getitem__):
            at = self._places[id]  # dropped from below, and sent by Focus again
            self.tiers.add(self._messages[at], self._sizes[at], now)
        recalled = self._recall_units(units, here, now)
        sent = insert_recalled(history, request.messages, recalled) if recalled else request.messages
        if request.over_budget is not None:
            sent = self._services.systems(history)
        self.tiers.loans.sent = {message.id for message in sent}
        used = request.used + sum(self._services.tokens(history[place]) for place in recalled)
        self.tiers.run(now, used / self._rules.limit)
        return sent

    def _read(self, history: Messages, now: float) -> list[Message]:
        """Take in the history as it is now. Return the messages that are new."""
        known = len(self._dialogue.messages)
        same = self._dialogue.read(history)
        after = list(self._dialogue.messages[same:])
        del self._messages[same:], self._sizes[same:], self._texts[same:]
        self._messages += after
        self._sizes += map(self._services.tokens, after)
        self._texts += ["\n".join((message.text, *(call.arguments for call in message.calls))) for message in after]
        new = [message for message in after if message.id not in self.tiers and message.id not in self.tiers.focus]
        if same < known:
            self._places = {message.id: at for at, message in enumerate(self._messages[:same])}
        for at, message in enumerate(after, same):
            self._places[message.id] = at
            self.tiers.add(message, self._sizes[at], now)
        return new

    def _look_up(self, new: Sequence[Message], sent: Messages, here: set[str]) -> None:
        """Search for a new question, and look up the messages that new messages quote or name."""
        in_focus: list[tuple[str, str, float | None]] = []
        loans, question = self.tiers.loans, self._dialogue.question()
        if question is not None and question.id != loans.turn:
            loans.turn = question.id
            hits = self.tiers.search(both_ends(question.text, QUERY), self._rules.k)
            loans.called = dict(hits)
            in_focus += [(id, FOCUS, score) for id, score in hits if id in here]
        for message in new:
            if message.role == "user":
                loans.called.update(dict.fromkeys(self.tiers.quoted(both_ends(message.text, READ))))
        naming = (
            replace(message, text=both_ends(message.text, READ))
            for message in new
            if message.role == "user" or message.calls
        )
        if values := list(islice(dict.fromkeys(value for message in naming for value in named(message)), VALUES)):
            now = {message.id for message in new}
            known = (message.id for message in sent if message.id in self._places and message.id not in now)
            before = {id: self._texts[self._places[id]] for id in known}
            whole = "\n".join(before.values())
            for value in values:
                earlier = None  # the latest message in Focus that contains the value
                if any(spelling in whole for spelling in value):
                    latest = reversed(before.items())
                    earlier = next((id for id, text in latest if any(occurs(each, text) for each in value)), None)
                if earlier is not None:
                    in_focus.append((earlier, FOCUS, None))
                elif (id := self.tiers.containing(value)) is not None:
                    loans.called[id] = None
        self._report(list(dict.fromkeys(in_focus)))

    def _recall_units(self, units: Units, here: set[str], now: float) -> list[int]:
        """Read units, and return the places of their messages in the history, ascending."""
        messages, places = self._messages, list[int]()
        read: list[tuple[str, str, float | None]] = []
        for start, score in sorted(units.items()):
            members = [at for at in range(*self._dialogue.units.around(start)) if messages[at].id not in here]
            places += map(self._dialogue.place, members)
            for id in (messages[at].id for at in members):
                if id not in self.tiers.loans.sent and id in self.tiers:
                    trigger = Trigger.FOCUS_REFERENCE if score is None else _TRIGGERS[self.tiers.migration.tier(id)]
                    read.append((id, self.tiers.read(id, trigger, now), score))
        self._report(read)
        return places

    def _units(self, history: Messages, here: set[str], room: int) -> Units:
        """Choose the units to recall: named ones first, then by score, while they fit in `room` tokens."""
        messages, units = self._messages, self._dialogue.units
        taken: Units = {}
        order = sorted(self.tiers.loans.called.items(), key=lambda item: item[1] is not None)
        for id, score in order:
            at = self._places.get(id)
            if at is None or id in here:
                continue
            start = units.before(at)
            # Results that have lost their call cannot be sent.
            if start in taken or messages[start].role == "tool" or self._is_lost(start, here):
                continue
            tokens = self._tokens((start,), here)
            if tokens <= room:
                taken[start] = score
                room -= tokens
        return self._start_with_user(history, taken, here, room)

    def _start_with_user(self, history: Messages, taken: Units, here: set[str], room: int) -> Units:
        """Add the user message that opened the first unit's turn if it fits, else drop units that need one."""
        begins = min((self._places[id] for id in here if id in self._places), default=0)
        while taken and (first := min(taken)) < begins:
            opening = self._services.opening(history, self._dialogue.place(first))
            if opening is None:
                break
            start = self._dialogue.units.before(self._places[history[opening].id])
            if not self._is_lost(start, here) and self._tokens((start,), here) <= room:
                taken[start] = taken[first]
                break
            room += self._tokens((first,), here)
            del taken[first]
        return taken

    def _is_lost(self, start: int, here: set[str]) -> bool:
        """Return whether a message of a unit is neither sent anyway nor in any tier."""
        members = (self._messages[at].id for at in range(*self._dialogue.units.around(start)))
        return any(id not in here and self.tiers.lost(id) for id in members)

    def _tokens(self, starts: Iterable[int], here: set[str]) -> int:
        """Return the tokens of units without the messages that are sent anyway."""
        messages, sizes, units = self._messages, self._sizes, self._dialogue.units
        places = (at for start in starts for at in range(*units.around(start)))
        return sum([sizes[at] for at in places if messages[at].id not in here])

    def _report(self, looked_up: Sequence[tuple[str, str, float | None]]) -> None:
        """Record look-ups by tier, searched messages and named ones separately."""
        for tier in (FOCUS, WORKING, ARCHIVE, RAG):
            searched = [(id, score) for id, where, score in looked_up if where == tier and score is not None]
            if searched:
                ids, scores = zip(*searched, strict=True)
                self._services.record(Recalled(ids, scores, tier))
            if ids := tuple(id for id, where, score in looked_up if where == tier and score is None):
                self._services.record(Recalled(ids, (), tier))


def _ids(request: Focused) -> set[str]:
    return {message.id for message in request.messages}


def insert_recalled(history: Messages, sent: Messages, places: Sequence[int]) -> Messages:
    """Insert messages at ascending places of the history into the messages that are sent.

    A summary or merged message keeps the message after it as its neighbour.
    """
    stretches: dict[int, list[tuple[int, int, int]]] = {}  # by store: start, stop, place of the start in the history
    place = 0
    for store, start, stop in history.spans:
        stretches.setdefault(id(store), []).append((start, stop, place))
        place += stop - start
    waiting = list(reversed(places))
    spans: list[Span] = []
    for span in sent.spans:
        pieces: list[tuple[float, Span]] = []  # the span, cut where the history cuts it, with places in the history
        for start, stop, place in sorted(stretches.get(id(span.store), ())):
            low, high = max(start, span.start), min(stop, span.stop)
            if low < high:
                pieces.append((place + low - start, Span(span.store, low, high)))
        for place_of, piece in pieces or [(-inf, span)]:
            while waiting and waiting[-1] < place_of:
                spans += history[waiting[-1] : waiting.pop() + 1].spans
            spans.append(piece)
    while waiting:
        spans += history[waiting[-1] : waiting.pop() + 1].spans
    return sum((Messages((span,)) for span in spans), Messages())


RESERVE = 8
"""System messages and tool schemas each have a reserve of 1 / RESERVE of the limit: the document's 1K of 8K."""


@dataclass(frozen=True, slots=True)
class Tiered(TieredSettings):
    """Four memory tiers: a request takes at most `limit` tokens, older messages are demoted, searched and recalled.

    - *Focus* is `focus(limit)` with its truncations. A conversation that fits is sent as it is. A longer one leaves
      `recall` tokens of the limit for recalled messages.
    - *Working* holds `working` tokens of the messages that Focus leaves out; the cache policy `policy` chooses its
      victims (`ctxbench lab tiers working` compares policies).
    - *Archive* holds `archive` tokens of Working's victims, in compressed blocks; `archive_policy` chooses its own.
    - *RAG* has the rest, and the search. With `rag` it holds so many tokens, and loses what is used least.

    `tiers` is how many there are, from the top. What the lowest evicts is lost. Without RAG messages are found only by
    what is quoted or named; without the tiers below Focus nothing is, and this is `focus` with the same truncation.

    At each new user message, the best `k` messages below Focus are searched for (`retrievers`: bm25, graph, and vector,
    which needs an embedder; its `index` is exact or hnsw; the first `rerank` hits are ordered anew by the exact scores
    of all), and the messages that it quotes. At each call, the values (identifiers, numbers, dates, paths) in user
    messages and arguments of tool calls are looked up: the latest message with the value, if few have it. Recalled
    messages are sent unchanged in their old place, calls with their results: named and quoted ones first, then by
    score, while they fit in `recall`. They stay until the turn is over. Named messages are promoted to Working, search
    results only if they are hot.

    Every message is in exactly one tier; a message below that Focus sends is a loan. Moves, crossed quotas, alarms and
    look-ups with the tier that answered are events (Moved, LimitReached, Alarmed, Recalled).

    `preload` promotes messages that usually come next, `tune` lets the document's tuner change weights, threshold and
    level, `collect` demotes between calls what has gone cold and what stores hold beyond their limits (the document's
    heat decay and collection under pressure). None of them is worth it (decisions 15, 20 and 21).

    Time is recorded time; it never goes back, and a call without a time is a second after the last.
    """

    fails: ClassVar[str] = "the question shares no words or values with the messages that it needs"
    family: ClassVar[str] = "tiers"
    copyable: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.recall >= self.limit:
            raise ValueError(f"recall must be below limit, {self.limit}, not {self.recall}")
        for name in ("policy", "archive_policy"):
            try:
                policy = parse(getattr(self, name))
            except SpecError as error:
                raise ValueError(f"{name}: {error}") from None
            if isinstance(policy, Belady):
                raise ValueError(f"{name}={text_of(policy)!r} needs future accesses, which a strategy does not know")
        if self.index == "hnsw" and find_spec("hnswlib") is None:
            raise MissingExtra("hnswlib", "hnswlib")
        RagRules(retrievers=self.retrievers)
        try:
            self._focus(self.limit - self.recall)
        except ValueError as error:
            raise ValueError(f"without the {self.recall} tokens of recall, {error}") from None

    @property
    def budget(self) -> int:
        return self.limit

    def start(self, services: StrategyContext) -> View:
        return self._focus(self.limit).start(services) if self.tiers == 1 else self.open(services).view

    def open(self, services: StrategyContext, tiers: Tiers | None = None) -> TieredSession:
        """Open one conversation of two tiers or more, or continue one with its restored `tiers`."""
        if tiers is None:
            tiers = Tiers(self, services.record, services.embed)
        return TieredSession(self, self._focus(self.limit).open(services), tiers, services)

    def _focus(self, limit: int) -> Focus:
        share = self.limit // RESERVE
        return Focus(limit, self.truncation, share, share, language=self.language)
