"""The probes of one conversation, asked of one strategy while its calls are replayed."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from ...metrics.probes import PlacedProbe, RetainedEvidence, SentText
from ...metrics.tokens import PRIMING
from ...scenarios.errors import Stopped
from ...scenarios.model import Message, Tool
from ...scenarios.view import Messages, shared
from ...strategies.base import Misfit, Strategy, is_copyable
from ...strategies.events import Archived, Deleted, Event, Moved, Recalled, Summarised
from ..folder.store import Constant, ResultPart
from ..replay import Answering, ContextLog, ConversationIndex, RecordedContext, proceed, started, well_formed, why
from .ask import Asker, OfBound, OfCopies, OfReplays, ProbeReply, ReplayedModels, questions
from .results import QUESTION


@dataclass(slots=True)
class ProbeResult:
    """What was sent for one probe, as it is kept: against the context of the nearest step before it."""

    asked: PlacedProbe
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
    evidence: tuple[RetainedEvidence, ...] = ()
    answer: bool | None = None
    """Whether an accepted answer is there; None if none had been said."""


def interviewed(books: ConversationIndex, strategy: Strategy, models: Answering, log: ContextLog) -> list[ProbeResult]:
    """Replay a cell into its log, asking its probes on the way. Raises what the strategy raises in the replay."""
    tape = None if is_copyable(strategy) else ReplayedModels(models)
    desk = RecordedContext(books, tape or models)
    view = started(strategy, desk)
    asker = OfReplays(strategy, books, tape) if tape is not None else OfCopies(view, desk, models)
    interview = _Interview(books, asker, log)
    found = list(interview.after(-1))
    for number, step in enumerate(proceed(books.conversation, view, desk)):
        log.add(step)
        found += interview.after(number)
    return found


def bounded(books: ConversationIndex, bound: Strategy, models: Answering) -> list[ProbeResult]:
    """The probes asked of a bound, which needs nothing but the history."""
    interview = _Interview(books, OfBound(bound, books, models), ContextLog(books.conversation.messages))
    return list(interview.all())


class _Interview:
    """The probes of one conversation, and who is asked."""

    def __init__(self, books: ConversationIndex, asker: Asker, log: ContextLog) -> None:
        self._books, self._asker, self._log = books, asker, log
        self._standing, self._heard = Substitutions(), 0
        self._due: dict[int, list[tuple[PlacedProbe, Message]]] = defaultdict(list)
        """By the step that they are asked after."""
        calls = list(books.conversation.calls())
        for asked, question in zip(books.asked, questions(books.asked, books.ids), strict=True):
            self._due[bisect_right(calls, asked.stop) - 1].append((asked, question))
        self._places = {message.id: at for at, message in enumerate(books.conversation.messages)}

    def all(self) -> Iterator[ProbeResult]:
        """Ask every probe, with no step before it."""
        for due in self._due.values():
            for asked, question in due:
                yield self._probed(asked, question, None)

    def after(self, step: int) -> Iterator[ProbeResult]:
        """Ask what is to be asked after a step, and before the next; -1 = before the first."""
        for _, event in self._log.events[self._heard :]:
            self._standing.hear((event,))
        self._heard = len(self._log.events)
        for asked, question in self._due.get(step, ()):
            yield self._probed(asked, question, step if step >= 0 else None)

    def _probed(self, asked: PlacedProbe, question: Message, step: int | None) -> ProbeResult:
        """What is sent for a probe; if the strategy raises, why. It loses this probe and nothing else."""
        try:
            return self._made(asked, question, step, self._asker.ask(asked, question))
        except Stopped:
            raise
        except (Exception, SystemExit) as error:
            return ProbeResult(asked, step, why(error))

    def _made(self, asked: PlacedProbe, question: Message, step: int | None, reply: ProbeReply) -> ProbeResult:
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
        what = SentText(sent, books.conversation.messages, books.ledger, question.id)
        loadable = self._loadable(standing, what, offers)
        stood_for = standing.stood_for(what.written)
        names = frozenset(name for name, _ in loadable)
        return ProbeResult(
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

    def _loadable(self, standing: Substitutions, sent: SentText, offers: bool) -> tuple[tuple[str, str], ...]:
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


FOCUS = "focus"
"""The tier that is sent: what leaves it is in one below."""


class Substitutions:
    """What a strategy has reported so far in a conversation."""

    __slots__ = ("_by", "_recalled", "_texts", "archived", "held")

    def __init__(self) -> None:
        self._by: dict[str, tuple[str, int]] = {}
        """Of each message that was summarised, who did, and the level that stands for it now."""
        self._texts: dict[tuple[str, int], str] = {}
        self._recalled: set[str] = set()
        self.archived: dict[str, str] = {}
        """The messages in the archive, by what the model asks for them with."""
        self.held: dict[str, str] = {}
        """The messages in a tier below what is sent, and in which."""

    def copy(self) -> Substitutions:
        """The same, to go on from. What was recalled for one call is not recalled for the next."""
        made = Substitutions()
        made._by, made._texts = dict(self._by), dict(self._texts)
        made.archived, made.held = dict(self.archived), dict(self.held)
        return made

    def hear(self, events: Iterable[Event]) -> None:
        """What was reported next."""
        for event in events:
            match event:
                case Summarised(replaced, summary, level, by):
                    self._by.update(dict.fromkeys(replaced, (by, level)))
                    self._texts[by, level] = summary
                case Recalled(sources):
                    self._recalled.update(sources)
                case Archived(message, uuid):
                    self.archived[uuid] = message
                case Deleted(uuids):
                    for uuid in uuids:
                        self.archived.pop(uuid, None)
                case Moved(sources, source, to):
                    for name in sources:
                        if source == FOCUS or name in self.held:
                            self.held[name] = to
                case _:
                    pass

    def stood_for(self, written: Iterable[Message]) -> frozenset[str]:
        """The messages of which a summary, or what was recalled, is among what the strategy wrote and sends."""
        texts = [message.text for message in written]
        sent = {who for who, text in self._texts.items() if any(text in each for each in texts)}
        return frozenset(name for name, who in self._by.items() if who in sent) | (
            frozenset(self._recalled) if texts else frozenset()
        )


FIELDS = ("kept", "marks", "tokens_full", "tokens_sent")
"""What a failed probe has none of, and any other as it is."""


def write_probes(
    part: ResultPart, strategies: Mapping[str, Sequence[tuple[str, Sequence[ProbeResult]]]], digest: str = ""
) -> None:
    """Write the probes of one part: by strategy, each conversation with its probes."""
    rows = [(spec, name, each) for spec, cells in strategies.items() for name, probes in cells for each in probes]
    only = next(iter(strategies)) if len(strategies) == 1 else None
    part.write(
        "probes",
        {
            "conversation": [name for _, name, _ in rows],
            "strategy": Constant(only, len(rows)) if only is not None else [spec for spec, _, _ in rows],
            **_columns([each for _, _, each in rows]),
        },
        digest,
    )


def _columns(rows: Sequence[ProbeResult]) -> dict[str, Sequence[Any]]:
    asked = [each.asked for each in rows]
    done = [not each.failed for each in rows]

    def of(values: Sequence[Any]) -> list[Any]:
        """Null where the probe failed."""
        return [value if ok else None for value, ok in zip(values, done, strict=True)]

    return {
        "number": [each.number for each in asked],
        "probe": [each.probe.id for each in asked],
        "category": [each.probe.category for each in asked],
        "answerable": [each.probe.answerable for each in asked],
        "at": [each.stop for each in asked],
        "step": [each.step for each in rows],
        "failed": [each.failed for each in rows],
        "evidence": [[one.id for one in each.evidence] for each in asked],
        **{name: of([getattr(each, name) for each in rows]) for name in FIELDS},
        "added_from": of([[start for start, _ in each.added] for each in rows]),
        "added_to": of([[stop for _, stop in each.added] for each in rows]),
        "written": of([_json(each.written) for each in rows]),
        "written_tokens": of([each.tokens_written for each in rows]),
        "tools": [None if each.tools is None else _json(each.tools) for each in rows],
        "events": of([_json(each.events) for each in rows]),
        "loadable": of([[name for name, _ in each.loadable] for each in rows]),
        "loadable_by": of([[key for _, key in each.loadable] for each in rows]),
        "recalled": [each.recalled for each in rows],
        "evidence_state": of([[one.state for one in each.evidence] for each in rows]),
        "evidence_share": of([[one.share for one in each.evidence] for each in rows]),
        "evidence_tokens": of([sum(one.tokens for one in each.evidence) for each in rows]),
        "evidence_place": of([_place(each) for each in rows]),
        "answer": of([each.answer for each in rows]),
    }


def _json(values: Sequence[Any]) -> list[str]:
    return [msgspec.json.encode(value).decode() for value in values]


def _place(probed: ProbeResult) -> float | None:
    """Where the evidence is, its tokens together; None if none of it is there."""
    tokens = sum(each.tokens for each in probed.evidence)
    return round(sum(each.tokens * each.place for each in probed.evidence) / tokens, 6) if tokens else None
