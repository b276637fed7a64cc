"""Measure what truncations of the Focus tier keep of recordings: `ctxbench bench-tier focus`.

Each recorded call is put through every way (any strategy), as in a run. Each probe is asked where it stands: its
question is the newest message, and its evidence is kept if the message is sent word for word. Two rows stand beside the
ways: the whole history, which keeps everything, and a bound, the most evidence that fits beside what is never cut.

This is no preset of `ctxbench run`, since its figures would differ: a run asks probes of a copy of the strategy, so
that they leave no trace in it, has no bound on the evidence that fits, and leaves out conversations by another rule.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ...metrics.grounding import retained
from ...metrics.grounding import said as spelled
from ...metrics.probes import Latency, latency
from ...metrics.statistics.intervals import Interval, interval
from ...metrics.tokens import PRIMING, TokenCounter
from ...metrics.value import Missing, Value
from ...metrics.values import places
from ...scenarios.errors import UserError
from ...scenarios.model import Conversation, Message, Probe
from ...scenarios.view import Messages
from ...strategies.base import Context, Strategy, StrategyTypeError
from ...strategies.events import OverBudget
from ..engine.shard import no_cycles
from ..models import Models
from ..replay import ContextLog, ConversationIndex, RecordedContext, replay

WHOLE, BOUND = "none (the whole history)", "bound (evidence first)"


@dataclass
class FocusResult:
    """One conversation under one way."""

    way: str
    conversation: str
    calls: int = 0
    whole: int = 0
    """Tokens of all requests with the whole history."""
    sent: int = 0
    over: int = 0
    """Requests over the limit."""
    refused: int = 0
    """Calls at which the strategy reports that its limit cannot be met."""
    demands: int = 0
    """Values that the recorded model used next."""
    grounded: int = 0
    micros: list[float] = field(default_factory=list)
    """Microseconds that each call took to decide, without models."""
    recalls: list[float] = field(default_factory=list)
    """For each probe with evidence, the share of the evidence that is kept."""
    reachable: list[float] = field(default_factory=list)
    """For each probe whose accepted answer was said word for word, whether it is in what is sent."""
    failed: str = ""


class FocusRow(NamedTuple):
    """The figures of one way over all conversations that no way failed in."""

    way: str
    calls: int
    tokens: int
    share: Value
    """Share of the tokens of the whole history."""
    over: int
    refused: int
    recall: Interval | Missing
    reachable: Interval | Missing
    grounded: Value
    micros: Latency | Missing
    probes: int


class _FocusProbe(NamedTuple):
    """A probe at its place in a conversation."""

    stop: int
    """Number of messages before it."""
    question: Message
    evidence: tuple[int, ...]
    """Places of the messages that it rests on."""
    answers: frozenset[int]
    """Places of the messages that say an accepted answer."""
    probe: Probe


def measured(
    conversations: Iterable[Conversation],
    ways: dict[str, Strategy],
    limit: int,
    models: Models,
    counter: TokenCounter,
    done: Callable[[], None] = lambda: None,
) -> Iterator[FocusResult]:
    """Yield every conversation under the whole history, the bound and then every way."""
    for conversation in conversations:
        index = ConversationIndex(conversation, counter)
        probes = _placed_probes(conversation)
        baseline = _whole(index, probes, limit)
        yield baseline
        yield _bound(index, probes, limit)
        for name, strategy in ways.items():
            yield _result(name, strategy, index, probes, limit, models, baseline)
        done()


def _placed_probes(conversation: Conversation) -> list[_FocusProbe]:
    """Return the probes that can be answered from the conversation, in the order in which they are asked."""
    messages = conversation.messages
    place_of = {message.id: at for at, message in enumerate(messages)}
    answers = [probe.answers for probe in conversation.probes]
    which, where = places(answers, [spelled(message) for message in messages]) if any(answers) else ((), ())
    places_of_answer: dict[int, set[int]] = {}
    for value, at in zip(which, where, strict=True):
        places_of_answer.setdefault(int(value), set()).add(int(at))
    probes = []
    for number, probe in enumerate(conversation.probes):
        stop = place_of.get(probe.after, len(messages) - 1) + 1
        evidence = tuple(sorted({at for name in probe.evidence if (at := place_of.get(name, stop)) < stop}))
        answered = frozenset(at for at in places_of_answer.get(number, ()) if at < stop)
        if probe.answerable and (evidence or answered):
            question = Message(f"probe:{probe.id}", "user", probe.question)
            probes.append(_FocusProbe(stop, question, evidence, answered, probe))
    return sorted(probes, key=lambda probe: probe.stop)


def _whole(index: ConversationIndex, probes: Sequence[_FocusProbe], limit: int) -> FocusResult:
    """Return the result of sending the whole history at each call and probe."""
    conversation = index.conversation
    tools = index.tools(conversation.tools) + PRIMING
    sizes = [index.ledger.upto(at) + tools for at in conversation.calls()]
    demands = int(index.demands.values.sum())
    return FocusResult(
        WHOLE,
        conversation.id,
        calls=len(sizes),
        whole=sum(sizes),
        sent=sum(sizes),
        over=sum(size > limit for size in sizes),
        demands=demands,
        grounded=demands,
        recalls=[1.0 for probe in probes if probe.evidence],
        reachable=[1.0 for probe in probes if probe.answers],
    )


def _bound(index: ConversationIndex, probes: Sequence[_FocusProbe], limit: int) -> FocusResult:
    """Return how much of each probe's evidence fits beside system messages, tool schemas and the question, shortest
    first.

    Calls and results may be separated here, and nothing else is sent: no way within the limit keeps more.
    """
    conversation, count = index.conversation, index.counter.message
    result = FocusResult(BOUND, conversation.id)
    for probe in probes:
        history = Messages.prefix(conversation.messages, probe.stop)
        left = limit - PRIMING - index.tools(conversation.tools) - count(probe.question)
        left -= index.ledger.total(index.structure.systems(history))
        fitting = 0
        for tokens in sorted(0 if history[at].role == "system" else count(history[at]) for at in probe.evidence):
            left -= tokens
            fitting += left >= 0
        if probe.evidence:
            result.recalls.append(fitting / len(probe.evidence))
    return result


def _result(
    name: str,
    strategy: Strategy,
    index: ConversationIndex,
    probes: Sequence[_FocusProbe],
    limit: int,
    models: Models,
    whole: FocusResult,
) -> FocusResult:
    result = FocusResult(name, index.conversation.id, calls=whole.calls, whole=whole.whole, demands=whole.demands)
    try:
        _replay(result, strategy, index, limit, models)
        _probe(result, strategy, index, probes, models)
    except (UserError, StrategyTypeError) as error:
        result.failed = str(error)
    except Exception as error:  # a strategy of the user's own
        result.failed = f"{type(error).__name__}: {error}"
    return result


def _replay(result: FocusResult, strategy: Strategy, index: ConversationIndex, limit: int, models: Models) -> None:
    """Add every recorded call to the result."""
    log = ContextLog(index.conversation.messages)
    with no_cycles():  # as in a run
        for step in replay(index.conversation, strategy, RecordedContext(index, models)):
            log.add(step)
            tokens = PRIMING + index.tools(step.context.tools) + index.ledger.total(step.context.messages)
            result.sent += tokens
            result.over += tokens > limit
            result.refused += any(isinstance(event, OverBudget) for event in step.events)
            result.micros.append(step.latency_ns / 1000)
    result.grounded = int(retained(index.demands, log.runs, log.written).sum())


def _probe(
    result: FocusResult, strategy: Strategy, index: ConversationIndex, probes: Sequence[_FocusProbe], models: Models
) -> None:
    """Add every probe at its place, after the calls before it. Its question is not part of what comes after it."""
    conversation = index.conversation
    place = {message.id: at for at, message in enumerate(conversation.messages)}
    context = RecordedContext(index, models)
    view = strategy.start(context)
    calls = [at for at in conversation.calls() if probes and at <= probes[-1].stop]
    waiting = list(reversed(calls))
    for probe in probes:
        while waiting and waiting[-1] <= probe.stop:
            at = waiting.pop()
            context.move_to(at)
            view(Context(Messages.prefix(conversation.messages, at), (), conversation.tools))
        history = Messages.prefix(conversation.messages, probe.stop) + Messages.of((probe.question,))
        sent = view(Context(history, (), conversation.tools)).messages
        here = {place.get(message.id, -1) for message in sent}
        written = [message for message in sent if message.id not in place and message.id != probe.question.id]
        if probe.evidence:
            result.recalls.append(sum(at in here for at in probe.evidence) / len(probe.evidence))
        if probe.answers:
            result.reachable.append(float(bool(here & probe.answers) or _says(written, probe.probe)))
        context.drain()


def _says(written: Sequence[Message], probe: Probe) -> bool:
    """Return whether a message that the strategy wrote has an accepted answer."""
    return bool(written) and len(places([probe.answers], [message.text for message in written])[0]) > 0


def rows(results: Sequence[FocusResult]) -> list[FocusRow]:
    """Return the figures of each way, over the conversations that no way failed in."""
    failed = {result.conversation for result in results if result.failed}
    names = dict.fromkeys(result.way for result in results)
    finished = [result for result in results if result.conversation not in failed]
    return [_row(name, [result for result in finished if result.way == name]) for name in names]


def _row(way: str, results: Sequence[FocusResult]) -> FocusRow:
    whole, demands = sum(result.whole for result in results), sum(result.demands for result in results)
    nothing = Missing("undefined", "the bound is for probes") if way == BOUND else Missing("undefined", "no calls")
    return FocusRow(
        way,
        sum(result.calls for result in results),
        sum(result.sent for result in results),
        sum(result.sent for result in results) / whole if whole else nothing,
        sum(result.over for result in results),
        sum(result.refused for result in results),
        _mean(results, [result.recalls for result in results]),
        _mean(results, [result.reachable for result in results]),
        sum(result.grounded for result in results) / demands if demands else nothing,
        latency([micros for result in results for micros in result.micros]),
        sum(len(result.recalls) for result in results),
    )


def _mean(results: Sequence[FocusResult], values: Sequence[Sequence[float]]) -> Interval | Missing:
    groups = [
        result.conversation for result, values_of_result in zip(results, values, strict=True) for _ in values_of_result
    ]
    return interval([value for values_of_result in values for value in values_of_result], groups)
