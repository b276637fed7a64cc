"""The probes of one conversation, asked of one strategy while its calls are replayed."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from ...metrics.probing import Asked, Kept, Sent
from ...metrics.tokens import PRIMING
from ...scenarios.errors import Stopped
from ...scenarios.model import Message, Tool
from ...scenarios.view import Messages, shared
from ...strategies.base import Misfit, Strategy, is_copyable
from ...strategies.events import Event, Recalled
from ..desk import Answering, Books, RecordedDesk
from ..log import Log
from ..replay import proceed, started, well_formed
from ..why import why
from .asking import Asker, OfBound, OfCopies, OfReplays, Reply, questions
from .standing import FOCUS, Standing
from .stored import QUESTION
from .tape import Tape


@dataclass(slots=True)
class Probed:
    """What was sent for one probe, as it is kept: against the context of the nearest step before it."""

    asked: Asked
    step: int | None
    """That step; None if it is asked before the first model call."""
    failed: str = ""
    """Why nothing was sent. All that follows is then empty."""
    kept: int = 0
    added: tuple[tuple[int, int], ...] = ()
    written: tuple[Message, ...] = ()
    tokens_written: tuple[int, ...] = ()
    marks: tuple[int, ...] = ()
    tools: tuple[Tool, ...] | None = None
    """Those offered, if they are not the recording's."""
    events: tuple[Event, ...] = ()
    loadable: tuple[tuple[str, str], ...] = ()
    """(message, what the model asks for it with; empty if it is offered no tool)."""
    recalled: tuple[str, ...] | None = None
    """The messages recalled, best first; None if nothing was."""
    tokens_full: int = 0
    tokens_sent: int = 0
    evidence: tuple[Kept, ...] = ()
    answer: bool | None = None
    """Whether an accepted answer is there; None if none had been said."""


def interviewed(books: Books, strategy: Strategy, models: Answering, log: Log) -> list[Probed]:
    """Replay a cell into its log, asking its probes on the way. Raises what the strategy raises in the replay."""
    tape = None if is_copyable(strategy) else Tape(models)
    desk = RecordedDesk(books, tape or models)
    view = started(strategy, desk)
    asker = OfReplays(strategy, books, tape) if tape is not None else OfCopies(view, desk, models)
    interview = _Interview(books, asker, log)
    found = list(interview.after(-1))
    for number, step in enumerate(proceed(books.conversation, view, desk)):
        log.add(step)
        found += interview.after(number)
    return found


def bounded(books: Books, bound: Strategy, models: Answering) -> list[Probed]:
    """The probes asked of a bound, which needs nothing but the history."""
    interview = _Interview(books, OfBound(bound, books, models), Log(books.conversation.messages))
    return list(interview.all())


class _Interview:
    """The probes of one conversation, and who is asked."""

    def __init__(self, books: Books, asker: Asker, log: Log) -> None:
        self._books, self._asker, self._log = books, asker, log
        self._standing, self._heard = Standing(), 0
        self._due: dict[int, list[tuple[Asked, Message]]] = defaultdict(list)
        """By the step that they are asked after."""
        calls = list(books.conversation.calls())
        for asked, question in zip(books.asked, questions(books.asked, books.ids), strict=True):
            self._due[bisect_right(calls, asked.stop) - 1].append((asked, question))
        self._places = {message.id: at for at, message in enumerate(books.conversation.messages)}

    def all(self) -> Iterator[Probed]:
        """Ask every probe, with no step before it."""
        for due in self._due.values():
            for asked, question in due:
                yield self._probed(asked, question, None)

    def after(self, step: int) -> Iterator[Probed]:
        """Ask what is to be asked after a step, and before the next; -1 = before the first."""
        for _, event in self._log.events[self._heard :]:
            self._standing.hear((event,))
        self._heard = len(self._log.events)
        for asked, question in self._due.get(step, ()):
            yield self._probed(asked, question, step if step >= 0 else None)

    def _probed(self, asked: Asked, question: Message, step: int | None) -> Probed:
        """What is sent for a probe; if the strategy raises, why. It loses this probe and nothing else."""
        try:
            return self._made(asked, question, step, self._asker.ask(asked, question))
        except Stopped:
            raise
        except (Exception, SystemExit) as error:
            return Probed(asked, step, why(error))

    def _made(self, asked: Asked, question: Message, step: int | None, reply: Reply) -> Probed:
        books, context = self._books, reply.context
        marks, recorded = context.marks, books.conversation.tools
        sent = self._log.settled(context.messages, asked.stop)
        if marks and not 0 <= min(marks) <= max(marks) < len(sent):
            raise Misfit(f"the marks of the Context are {marks}, and it has {len(sent)} messages, from 0")
        written = self._own(sent, question)
        added, kept = self._entry(sent, question, written, step)
        standing = self._standing.copy()
        standing.hear(reply.events)
        offers = any(tool not in recorded for tool in context.tools)
        what = Sent(sent, books.conversation.messages, books.ledger, question.id)
        loadable = self._loadable(standing, what, offers)
        stood_for = standing.stood_for(what.written)
        names = frozenset(name for name, _ in loadable)
        return Probed(
            asked,
            step,
            kept=kept,
            added=added,
            written=tuple(written),
            tokens_written=tuple(map(books.ledger.tokens, written)),
            marks=marks,
            tools=None if context.tools == recorded else context.tools,
            events=reply.events,
            loadable=loadable,
            recalled=_recalled(reply.events),
            tokens_full=PRIMING + books.tools(recorded) + books.ledger.upto(asked.stop) + books.ledger.tokens(question),
            tokens_sent=PRIMING + books.tools(context.tools) + what.tokens,
            evidence=tuple(what.kept(each, stood_for, names, books.counter.text) for each in asked.evidence),
            answer=what.says(asked) if asked.answers else None,
        )

    def _own(self, sent: Messages, question: Message) -> list[Message]:
        """What was written for this probe alone."""
        recording, made = self._books.conversation.messages, dict[Message, None]()
        for store, start, stop in sent.spans:
            for message in () if store is recording else store[start:stop]:
                if message != question and self._log.number(message) is None:
                    well_formed(message, Message)
                    made[message] = None
        return list(made)

    def _entry(
        self, sent: Messages, question: Message, written: list[Message], step: int | None
    ) -> tuple[tuple[tuple[int, int], ...], int]:
        """The context as the stretches added to what is kept of the step's."""
        size, log = len(self._books.conversation.messages), self._log
        kept = 0 if step is None else shared(log.sent, sent)
        own = {message: QUESTION - 1 - number for number, message in enumerate(written)}
        added: list[tuple[int, int]] = []
        for store, start, stop in sent[kept:].spans:
            if store is self._books.conversation.messages:
                added.append((start, stop))
                continue
            for message in store[start:stop]:
                number = log.number(message)
                place = QUESTION if message == question else own[message] if number is None else size + number
                added.append((place, place + 1))
        return tuple(added), kept

    def _loadable(self, standing: Standing, sent: Sent, offers: bool) -> tuple[tuple[str, str], ...]:
        """What is not sent as it was said, and is in an archive or a tier."""
        found = {name: key if offers else "" for key, name in standing.archived.items()}
        found.update((name, "") for name, tier in standing.held.items() if tier not in ("", FOCUS))
        places = self._places
        return tuple((name, key) for name, key in found.items() if name in places and not sent.has(places[name]))


def _recalled(events: tuple[Event, ...]) -> tuple[str, ...] | None:
    """The messages that were recalled, best first, each once; of equal scores in the order in which they were sent."""
    found = [event for event in events if isinstance(event, Recalled)]
    if not found:
        return None
    pairs = [
        (score, name)
        for event in found
        for name, score in zip(event.sources, event.scores or (0.0,) * len(event.sources), strict=False)
    ]
    return tuple(dict.fromkeys(name for _, name in sorted(pairs, key=lambda pair: -pair[0])))
