"""Ask the probes of a conversation while its calls are replayed; write them to a run, and read them back."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import msgspec

from ctxbench.metrics.probes import PlacedProbe, SentText, State, placed
from ctxbench.metrics.tokens import PRIMING
from ctxbench.scenarios.errors import Stopped
from ctxbench.scenarios.model import Conversation, Message, Probe, Tool
from ctxbench.scenarios.view import Messages, shared_prefix
from ctxbench.strategies.base import Context, Strategy, is_copyable
from ctxbench.strategies.events import Archived, Deleted, Event, Moved, Recalled, Summarised

from ..folder.run import QUESTION, NumberedMessages, Run
from ..folder.schema import SCHEMAS
from ..folder.store import ResultPart
from ..replay import (
    ContextLog,
    ConversationIndex,
    ModelCalls,
    RecordedContext,
    check_well_formed,
    failure_reason,
    replay_view,
    start_view,
)
from .ask import Ask, ProbeReply, RememberedModels, ask_bound, ask_copies, ask_replays, questions

ProbeRow = dict[str, Any]
"""The context sent for one probe, as what it adds to the context of the step before it: columns of the table `probes`
by name (`folder/data/columns.toml`). One that is not there is null."""


def ask_probes(index: ConversationIndex, strategy: Strategy, models: ModelCalls, log: ContextLog) -> list[ProbeRow]:
    """Replay a conversation into its log, and ask its probes on the way. Raises what the strategy raises."""
    # Started anew `layered` would take some 98 ms a probe, a copy takes 4.5 (decision 22).
    remembered = None if is_copyable(strategy) else RememberedModels(models)
    services = RecordedContext(index, remembered or models)
    view = start_view(strategy, services)
    anew = None if remembered is None else ask_replays(strategy, index, remembered)
    probing = _ProbeRun(index, anew or ask_copies(view, services, models), log)
    results = list(probing.after(-1))
    for number, step in enumerate(replay_view(index.conversation, view, services)):
        log.add(step)
        results += probing.after(number)
    return results


def ask_bounds(index: ConversationIndex, bound: Strategy, models: ModelCalls) -> list[ProbeRow]:
    """Ask a bound, which needs nothing but the history, the probes of a conversation."""
    probing = _ProbeRun(index, ask_bound(bound, index, models), ContextLog(index.conversation.messages))
    return [probing.result(probe, question, None) for due in probing.due.values() for probe, question in due]


class _ProbeRun:
    """The probes of one conversation while they are asked."""

    def __init__(self, index: ConversationIndex, ask: Ask, log: ContextLog) -> None:
        self._index, self._ask, self._log = index, ask, log
        self._substitutions, self._events_seen = Substitutions(), 0
        self._places = {message.id: at for at, message in enumerate(index.conversation.messages)}
        self.due: dict[int, list[tuple[PlacedProbe, Message]]] = defaultdict(list)
        """Probes with their questions, by the step that they are asked after."""
        calls = list(index.conversation.calls())
        for probe, question in zip(index.asked, questions(index.asked, index.ids), strict=True):
            # With calls at 2, 5 and 9 a probe after 5 messages belongs to step 1: a call at its very place comes before
            # it, as in `replay_view`. One after 1 message belongs to -1, before the first step.
            self.due[bisect_right(calls, probe.stop) - 1].append((probe, question))

    def after(self, step: int) -> Iterator[ProbeRow]:
        """Ask the probes between a step and the next; -1 = before the first step."""
        self._substitutions.follow(event for _, event in self._log.events[self._events_seen :])
        self._events_seen = len(self._log.events)
        for probe, question in self.due.get(step, ()):
            yield self.result(probe, question, step if step >= 0 else None)

    def result(self, probe: PlacedProbe, question: Message, step: int | None) -> ProbeRow:
        """Ask one probe after a step, if there is one. If the strategy raises, it loses this probe alone."""
        row = {
            "number": probe.number,
            "probe": probe.probe.id,
            "category": probe.probe.category,
            "answerable": probe.probe.answerable,
            "at": probe.stop,
            "step": step,
            "failed": "",
            "evidence": [message.id for message in probe.evidence],
        }
        try:
            return row | self._sent(probe, question, step, self._ask(probe, question))
        except Stopped:
            raise
        except (Exception, SystemExit) as error:  # of a plug-in, which may raise anything
            return row | {"failed": failure_reason(error)}

    def _sent(self, probe: PlacedProbe, question: Message, step: int | None, reply: ProbeReply) -> ProbeRow:
        """Return the columns that are null where the probe failed."""
        index, context, log = self._index, reply.context, self._log
        recording, recorded_tools = index.conversation.messages, index.conversation.tools
        sent = log.as_recorded(context.messages, probe.stop)
        kept = 0 if step is None else shared_prefix(log.sent, sent)
        added: list[tuple[int, int]] = []
        # What was written for this probe alone is numbered -2, -3 …: no number of the log is below 0.
        written: dict[Message, int] = {}
        for store, start, stop in sent[kept:].spans:
            if store is recording:
                added.append((start, stop))
                continue
            for message in store[start:stop]:
                if message == question:
                    place = QUESTION
                elif (number := log.numbers.get(message)) is not None:
                    place = len(recording) + number
                else:
                    place = written.setdefault(message, QUESTION - 1 - len(written))
                added.append((place, place + 1))
        for message in written:
            check_well_formed(message, Message)
        # A copy: what this question recalls or archives must not count for the next one.
        substitutions = self._substitutions.copy()
        substitutions.follow(reply.events)
        what = SentText(sent, recording, index.ledger, question.id)
        # The messages that are not sent as recorded but can be loaded, with the key to load each.
        offers = any(tool not in recorded_tools for tool in context.tools)
        keys = {name: key if offers else "" for key, name in substitutions.archived.items()}
        keys.update((name, "") for name, tier in substitutions.held.items() if tier not in ("", FOCUS))
        places = self._places
        loadable = {name: key for name, key in keys.items() if name in places and not what.has(places[name])}
        stood_for = substitutions.stood_for(what.written)
        evidence = [what.retained(message, stood_for, loadable, index.counter.text) for message in probe.evidence]
        tokens = sum(message.tokens for message in evidence)
        middle = sum(message.tokens * message.place for message in evidence)
        full = index.ledger.upto(probe.stop) + index.ledger.tokens(question)
        return {
            "tools": None if context.tools == recorded_tools else _json(context.tools),
            "recalled": _recalled(reply.events),
            "kept": kept,
            "marks": context.marks,
            "tokens_full": PRIMING + index.tools(recorded_tools) + full,
            "tokens_sent": PRIMING + index.tools(context.tools) + what.tokens,
            "added_from": [start for start, _ in added],
            "added_to": [stop for _, stop in added],
            "written": _json(written),
            "written_tokens": list(map(index.ledger.tokens, written)),
            "events": _json(reply.events),
            "loadable": list(loadable),
            "loadable_by": list(loadable.values()),
            "evidence_state": [message.state for message in evidence],
            "evidence_share": [message.share for message in evidence],
            "evidence_tokens": tokens,
            # Where in the context the evidence is, its tokens together.
            "evidence_place": round(middle / tokens, 6) if tokens else None,
            "answer": what.says(probe) if probe.answers else None,
        }


def _recalled(events: tuple[Event, ...]) -> tuple[str, ...] | None:
    """Return the recalled messages, best first, each once; those of equal scores in the order they were sent."""
    recalls = [event for event in events if isinstance(event, Recalled)]
    if not recalls:
        return None
    pairs = [
        (score, name)
        for event in recalls
        for name, score in zip(event.sources, event.scores or (0.0,) * len(event.sources), strict=False)
    ]
    return tuple(dict.fromkeys(name for _, name in sorted(pairs, key=lambda pair: -pair[0])))


FOCUS = "focus"
"""The tier that is sent: what leaves it is in one below."""


@dataclass(slots=True)
class Substitutions:
    """Texts that stand for messages which are not sent, from the events that a strategy has reported so far."""

    archived: dict[str, str] = field(default_factory=dict)
    """The messages in the archive, by what the model asks for them with."""
    held: dict[str, str] = field(default_factory=dict)
    """The messages in a tier below what is sent, and in which."""
    summarised: dict[str, tuple[str, int]] = field(default_factory=dict)
    """Each summarised message, with the strategy and the level of the summary that stands for it now."""
    texts: dict[tuple[str, int], str] = field(default_factory=dict)
    recalled: set[str] = field(default_factory=set)

    def copy(self) -> Substitutions:
        """Return a copy to go on from, without what was recalled: that holds for one call only."""
        return Substitutions(dict(self.archived), dict(self.held), dict(self.summarised), dict(self.texts))

    def follow(self, events: Iterable[Event]) -> None:
        """Take the next events into account."""
        for event in events:
            match event:
                case Summarised(replaced, summary, level, by):
                    self.summarised.update(dict.fromkeys(replaced, (by, level)))
                    self.texts[by, level] = summary
                case Recalled(sources):
                    self.recalled.update(sources)
                case Archived(message, uuid):
                    self.archived[uuid] = message
                case Deleted(uuids):
                    for uuid in uuids:
                        self.archived.pop(uuid, None)
                case Moved(sources, source, to):
                    self.held.update((name, to) for name in sources if source == FOCUS or name in self.held)
                case _:
                    pass

    def stood_for(self, written: Iterable[Message]) -> frozenset[str]:
        """Return the ids of the messages of which a summary, or a recalled text, is sent among the written ones."""
        texts = [message.text for message in written]
        sent = {who for who, text in self.texts.items() if any(text in text_sent for text_sent in texts)}
        by_summary = frozenset(name for name, who in self.summarised.items() if who in sent)
        return by_summary | self.recalled if texts else by_summary


def _json(values: Iterable[Any]) -> list[str]:
    return [msgspec.json.encode(value).decode() for value in values]


def write_probes(part: ResultPart, strategies: Mapping[str, Sequence[tuple[str, Sequence[ProbeRow]]]]) -> None:
    """Write the probes of one part. `strategies` maps each strategy to its conversations with their probes."""
    rows = [
        row | {"conversation": name, "strategy": spec}
        for spec, conversations in strategies.items()
        for name, probes in conversations
        for row in probes
    ]
    part.write("probes", {name: [row.get(name) for row in rows] for name in SCHEMAS["probes"].names})


class StoredProbe(NamedTuple):
    """One probe under one strategy, read from a run, with the context that would have been sent for it."""

    probe: Probe
    question: Message
    """The newest message of what the strategy was given. It is in the context as well, if the strategy sends it."""
    context: Context | None
    """Messages that would be sent; None if nothing was, for the reason in the column `failed`."""
    written: dict[Message, int]
    """Messages that the strategy wrote for this probe alone, with their tokens."""
    evidence: dict[str, State]
    """State of each message that it rests on and that had been said."""
    events: tuple[Event, ...]
    row: ProbeRow
    """The columns of the table `probes`."""


def asked_probes(run: Run, conversation: Conversation, strategy: str) -> Iterator[StoredProbe]:
    """Yield what a strategy, or a bound, was to send for each probe of a conversation, in the order they were asked."""
    if not conversation.probes:
        return
    ran = strategy in run.manifest.plan.strategies
    written = tuple(message for message, _ in run.written(conversation.id, strategy)) if ran else ()
    steps = list(run.contexts(conversation, strategy)) if ran else []
    order = placed(conversation)
    asked = questions(order, {message.id for message in conversation.messages})
    question_of = {probe.number: question for probe, question in zip(order, asked, strict=True)}
    with run.readable():
        for row in run.rows("probes", conversation.id, strategy):
            question = question_of[row["number"]]
            own = tuple(msgspec.json.decode(text, type=Message) for text in row["written"] or ())
            context = None
            if not row["failed"]:
                numbered = NumberedMessages(conversation.messages, written, (question, *own))
                before = steps[row["step"]][: row["kept"]] if row["step"] is not None else Messages()
                added = zip(row["added_from"], row["added_to"], strict=True)
                messages = before + Messages(numbered.span(*span) for span in added)
                tools = conversation.tools
                if row["tools"] is not None:
                    tools = tuple(msgspec.json.decode(text, type=Tool) for text in row["tools"])
                context = Context(messages, tuple(row["marks"]), tools)
            yield StoredProbe(
                conversation.probes[row["number"]],
                question,
                context,
                dict(zip(own, row["written_tokens"] or (), strict=True)),
                dict(zip(row["evidence"], row["evidence_state"] or (), strict=not row["failed"])),
                tuple(msgspec.json.decode(text, type=Event) for text in row["events"] or ()),
                row,
            )
