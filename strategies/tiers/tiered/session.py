"""One conversation under the four tiers: before each model call, what is sent."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import islice

from msgspec.structs import replace

from ....metrics.grounding import named
from ....metrics.values import Spellings, occurs
from ....scenarios.model import Message, Tool
from ....scenarios.view import Messages, Span
from ...base import Context, StrategyContext
from ...events import Recalled
from ...parts.units import Spoken
from ..focus import Focused
from ..focus import FocusSession as Focus
from ..migration import Trigger
from .tiers import ARCHIVE, FOCUS, RAG, WORKING, Tiers

QUERY = 400
"""Characters of a question that are searched for, half from each end."""
SLACK = 32
"""What is called back may leave so small a part of the limit unused: beyond that, Focus is asked to fill it."""
READ, VALUES = 4_000, 50
"""Characters of a message in which values are looked for, half at each end, and how many of them count."""
_TRIGGERS = {WORKING: Trigger.FOCUS_REFERENCE, ARCHIVE: Trigger.CACHE_MISS, RAG: Trigger.EXPLICIT_ACCESS}


Units = dict[int, float | None]
"""Where units start, and the score of each; None = it was named."""


class TieredSession:
    """What Focus sends, and what is called back from below: what the newest user message is like, looked for once a
    turn, and what the newest messages name.

    It is sent as it was said, calls with their results, in its old place. What was called back stays until the turn is
    over, so that the start of the context does not change at every call.
    """

    def __init__(self, focus: Focus, tiers: Tiers, desk: StrategyContext, limit: int, recall: int, k: int) -> None:
        self._focus, self.tiers, self._desk = focus, tiers, desk
        self._limit, self._recall, self._k = limit, recall, k
        self._spoken = Spoken(desk)
        self._said: list[Message] = []
        """The messages that are not the system's; a list is looked into faster than stretches are."""
        self._weights: list[int] = []
        """Their tokens."""
        self._texts: list[str] = []
        """What they say, arguments of calls too."""
        self._places: dict[str, int] = {}
        """Of each message, where it is among those that are not the system's."""
        self._question: Message | None = None
        """The newest user message that says something; if no user spoke, the newest that does."""
        self._answered: tuple[Messages, tuple[Tool, ...], Messages] | None = None

    def view(self, context: Context) -> Context:
        """What is sent. Asked again with nothing said since, it answers the same."""
        history, tools = context.messages, context.tools
        if self._answered is None or self._answered[:2] != (history, tools):
            self._answered = history, tools, self._sent(history, tools)
        sent = self._answered[2]
        return context if sent == history else context.sending(sent)

    def _sent(self, history: Messages, tools: tuple[Tool, ...]) -> Messages:
        now = self.tiers.clock.tick(self._desk.now)
        new = self._read(history, now)
        found = self._focus.send(history, tools, self._recall)
        here, units = _ids(found), Units()
        if found.refused is None and found.messages is not history:
            self._look_up(new, found.messages, here)
            units = self._units(history, here, min(self._recall, self._limit - found.used.total))
            needed = self._tokens(units, here)
            if self._recall - needed > self._limit // SLACK:
                found = self._focus.send(history, tools, needed)
                here = _ids(found)
                units = self._begun(history, units, here, self._limit - found.used.total - self._tokens(units, here))
        self.tiers.keep(here, now)
        self._lend(here, now)
        called = self._called_back(units, here, now)
        sent = merged(history, found.messages, called) if called else found.messages
        if found.refused is not None:
            sent = self._desk.systems(history)
        self.tiers.loans.sent = {message.id for message in sent}
        used = found.used.total + sum(self._desk.tokens(history[place]) for place in called)
        self.tiers.run(now, used / self._limit)
        return sent

    def _read(self, history: Messages, now: float) -> list[Message]:
        """Take the history as it is now. The messages that were never there before."""
        known = len(self._spoken.messages)
        same = self._spoken.read(history)
        after = list(self._spoken.messages[same:])
        del self._said[same:], self._weights[same:], self._texts[same:]
        self._said += after
        self._weights += map(self._desk.tokens, after)
        self._texts += map(_text, after)
        new = [message for message in after if message.id not in self.tiers and message.id not in self.tiers.focus]
        if same < known:
            self._places = {message.id: at for at, message in enumerate(self._said[:same])}
        for at, message in enumerate(after, same):
            self._places[message.id] = at
            self.tiers.say(message, self._weights[at], now)
        self._ask(self._said if same < known else after, is_all=same < known)
        return new

    def _ask(self, messages: Sequence[Message], is_all: bool) -> None:
        """Find the question: in what is new, or in all."""
        told = [message for message in messages if message.text.strip()]
        asked = next((message for message in reversed(told) if message.role == "user"), None)
        before = None if is_all else self._question
        if asked is not None:
            self._question = asked
        elif before is None or before.role != "user":
            self._question = told[-1] if told else before

    def _lend(self, here: set[str], now: float) -> None:
        """What Focus has chosen of what is below is read there. Nobody looked it up: it counts as a use, as no hit."""
        fresh = [id for id in here if id in self.tiers and id not in self.tiers.loans.sent]
        for id in sorted(fresh, key=self._places.__getitem__):
            self.tiers.read(id, Trigger.FOCUS_REFERENCE, now, asked=False)

    def _look_up(self, new: Sequence[Message], sent: Messages, here: set[str]) -> None:
        """Search for the question, if it is a new one, and for what the new messages name."""
        in_focus: list[tuple[str, str, float | None]] = []
        loans = self.tiers.loans
        if self._question is not None and self._question.id != loans.turn:
            loans.turn = self._question.id
            found = self.tiers.search(_ends(self._question.text, QUERY), self._k)
            loans.called = dict(found)
            in_focus += [(id, FOCUS, score) for id, score in found if id in here]
        for message in new:
            if message.role == "user":
                loans.called.update(dict.fromkeys(self.tiers.quoted(_ends(message.text, READ))))
        values = _values(new)
        if values:
            now = {message.id for message in new}
            known = (each.id for each in sent if each.id in self._places and each.id not in now)
            before = {id: self._texts[self._places[id]] for id in known}
            whole = "\n".join(before.values())
            for value in values:
                earlier = _says(value, before) if any(each in whole for each in value) else None
                if earlier is not None:
                    in_focus.append((earlier, FOCUS, None))
                elif (id := self.tiers.having(value)) is not None:
                    loans.called[id] = None
        self._report(list(dict.fromkeys(in_focus)))

    def _called_back(self, units: Units, here: set[str], now: float) -> list[int]:
        """Read units. The places in the history of what is called back, ascending."""
        said, places = self._said, list[int]()
        read: list[tuple[str, str, float | None]] = []
        for start, score in sorted(units.items()):
            members = [at for at in range(start, self._stop(start)) if said[at].id not in here]
            loans = self._loans([said[at] for at in members], score is None, now)
            if loans is not None:
                places += [self._spoken.place(at) for at in members]
                read += [(id, tier, score) for id, tier in loans]
        self._report(read)
        return places

    def _loans(self, messages: Sequence[Message], is_named: bool, now: float) -> list[tuple[str, str]] | None:
        """Read messages that were not sent at the last call. Ids and tiers; None if not all can be had."""
        found = []
        for message in messages:
            if message.id not in self.tiers:
                return None
            if message.id not in self.tiers.loans.sent:
                trigger = Trigger.FOCUS_REFERENCE if is_named else _TRIGGERS[self.tiers.migration.tier(message.id)]
                read = self.tiers.read(message.id, trigger, now)
                if read is None:
                    return None
                found.append((message.id, read.tier))
        return found

    def _units(self, history: Messages, here: set[str], room: int) -> Units:
        """Where the units start that are taken, with their scores: what was named first, then by score, as they fit."""
        said, starts = self._said, self._spoken.units.starts
        taken: Units = {}
        order = sorted(self.tiers.loans.called.items(), key=lambda each: each[1] is not None)
        for id, score in order:
            at = self._places.get(id)
            if at is None or id in here:
                continue
            start = starts[bisect_right(starts, at) - 1]
            if start in taken or said[start].role == "tool":  # results that have lost their call
                continue
            tokens = self._tokens((start,), here)
            if tokens <= room:
                taken[start] = score
                room -= tokens
        return self._begun(history, taken, here, room)

    def _begun(self, history: Messages, taken: Units, here: set[str], room: int) -> Units:
        """With a user message first, as Focus begins: with the one that opened the turn if it fits, else without what
        it opened.
        """
        begins = min((self._places[id] for id in here if id in self._places), default=0)
        while taken and (first := min(taken)) < begins:
            opening = self._desk.opening(history, self._spoken.place(first))
            if opening is None:
                break
            start = self._spoken.units.before(self._places[history[opening].id])
            if self._tokens((start,), here) <= room:
                taken[start] = taken[first]
                break
            room += self._tokens((first,), here)
            del taken[first]
        return taken

    def _stop(self, start: int) -> int:
        """Where the unit ends that starts there."""
        starts = self._spoken.units.starts
        after = bisect_right(starts, start)
        return starts[after] if after < len(starts) else len(self._said)

    def _tokens(self, starts: Iterable[int], here: set[str]) -> int:
        """Of units, without what is sent anyway."""
        said, weights = self._said, self._weights
        places = (at for start in starts for at in range(start, self._stop(start)))
        return sum([weights[at] for at in places if said[at].id not in here])

    def _report(self, found: Sequence[tuple[str, str, float | None]]) -> None:
        """Record what was looked up, by the tier that it was in: what was searched for, and what was named."""
        for tier in (FOCUS, WORKING, ARCHIVE, RAG):
            searched = [(id, score) for id, where, score in found if where == tier and score is not None]
            if searched:
                ids, scores = zip(*searched, strict=True)
                self._desk.record(Recalled(ids, scores, tier))
            if ids := tuple(id for id, where, score in found if where == tier and score is None):
                self._desk.record(Recalled(ids, (), tier))


def _ids(found: Focused) -> set[str]:
    return {message.id for message in found.messages}


def _values(new: Sequence[Message]) -> list[Spellings]:
    """The values that these messages name: what the user says, and what tools are called with."""
    naming = (each for each in new if each.role == "user" or each.calls)
    found = (value for each in naming for value in named(replace(each, text=_ends(each.text, READ))))
    return list(islice(dict.fromkeys(found), VALUES))


def _says(value: Spellings, texts: dict[str, str]) -> str | None:
    """The latest of these messages that says a value."""
    for id, text in reversed(texts.items()):
        if any(occurs(each, text) for each in value):
            return id
    return None


def _text(message: Message) -> str:
    return "\n".join((message.text, *(call.arguments for call in message.calls)))


def _ends(text: str, characters: int) -> str:
    """The two ends of a text that is longer."""
    half = characters // 2
    return text if len(text) <= characters else f"{text[:half]}\n{text[len(text) - half :]}"


def merged(history: Messages, sent: Messages, places: Sequence[int]) -> Messages:
    """The messages that are sent, and those of these places in the history, ascending, that are not among them.

    What was written in place of others keeps its neighbour after it: what is put before that comes between.
    """
    where = _Where(history)
    waiting = list(reversed(places))
    made: list[Span] = []
    for span in sent.spans:
        for start, piece in where.pieces(span):
            while start is not None and waiting and waiting[-1] < start:
                made += history[waiting[-1] : waiting.pop() + 1].spans
            made.append(piece)
    while waiting:
        made += history[waiting[-1] : waiting.pop() + 1].spans
    return _joined(made)


class _Where:
    """The places of spans in a history."""

    def __init__(self, history: Messages) -> None:
        self._stretches: dict[int, list[tuple[int, int, int]]] = {}
        """Of each store, its stretches: start, stop, and the place of the start."""
        place = 0
        for store, start, stop in history.spans:
            self._stretches.setdefault(id(store), []).append((start, stop, place))
            place += stop - start

    def pieces(self, span: Span) -> list[tuple[int | None, Span]]:
        """A span cut where it is cut in the history, each piece with its place; None if it is not of the history."""
        found: list[tuple[int | None, Span]] = []
        for start, stop, place in sorted(self._stretches.get(id(span.store), ())):
            low, high = max(start, span.start), min(stop, span.stop)
            if low < high:
                found.append((place + low - start, Span(span.store, low, high)))
        return found or [(None, span)]


def _joined(spans: Sequence[Span]) -> Messages:
    made = Messages()
    for span in spans:
        made = made + Messages((span,))
    return made
