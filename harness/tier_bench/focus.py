"""What the Focus tier's truncations keep of recordings: what `ctxbench bench-tier focus` shows.

Each recorded call is put through every way (any strategy), as in a run. Each probe is asked where it was: its question
is the newest message, and its evidence is kept if the message is sent as it was said. Beside the ways stand the whole
history, which keeps everything, and a bound: how much evidence fits beside what is never cut, whatever else goes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ...metrics.grounding import retained
from ...metrics.grounding import said as spelled
from ...metrics.probes import Latency, latency
from ...metrics.statistics.bootstrap import interval
from ...metrics.statistics.intervals import Interval
from ...metrics.tokens import PRIMING, TokenCounter
from ...metrics.value import Missing, Value
from ...metrics.values import places
from ...scenarios.errors import UserError
from ...scenarios.model import Conversation, Message, Probe
from ...scenarios.view import Messages
from ...strategies.base import Context, Misfit, Strategy
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
    """Calls at which the strategy says that its limit cannot be kept."""
    demands: int = 0
    """Values that the recorded model used next."""
    grounded: int = 0
    micros: list[float] = field(default_factory=list)
    """What deciding took at each call, without models."""
    recalls: list[float] = field(default_factory=list)
    """Of each probe with evidence, the share of it that is kept."""
    reachable: list[float] = field(default_factory=list)
    """Of each probe with an accepted answer that was said word for word, whether it is in what is sent."""
    failed: str = ""


class FocusRow(NamedTuple):
    """One way over all conversations that no way failed in."""

    way: str
    calls: int
    tokens: int
    share: Value
    """Of the tokens of the whole history."""
    over: int
    refused: int
    recall: Interval | Missing
    reachable: Interval | Missing
    grounded: Value
    micros: Latency | Missing
    probes: int


class _Asked(NamedTuple):
    """A probe at its place."""

    stop: int
    """Messages said before it."""
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
    """Every conversation under every way, the whole history and the bound before them."""
    for conversation in conversations:
        books = ConversationIndex(conversation, counter)
        asked = _asked(conversation)
        whole = _whole(books, asked, limit)
        yield whole
        yield _bound(books, asked, limit)
        for name, strategy in ways.items():
            yield _cell(name, strategy, books, asked, limit, models, whole)
        done()


def _asked(conversation: Conversation) -> list[_Asked]:
    """The probes that can be answered from what was said, in the order in which they are asked."""
    messages = conversation.messages
    place = {message.id: at for at, message in enumerate(messages)}
    answers = [probe.answers for probe in conversation.probes]
    which, where = places(answers, [spelled(message) for message in messages]) if any(answers) else ((), ())
    says: dict[int, set[int]] = {}
    for value, at in zip(which, where, strict=True):
        says.setdefault(int(value), set()).add(int(at))
    made = []
    for number, probe in enumerate(conversation.probes):
        stop = place.get(probe.after, len(messages) - 1) + 1
        evidence = tuple(sorted({at for name in probe.evidence if (at := place.get(name, stop)) < stop}))
        answered = frozenset(at for at in says.get(number, ()) if at < stop)
        if probe.answerable and (evidence or answered):
            question = Message(f"probe:{probe.id}", "user", probe.question)
            made.append(_Asked(stop, question, evidence, answered, probe))
    return sorted(made, key=lambda each: each.stop)


def _whole(books: ConversationIndex, asked: Sequence[_Asked], limit: int) -> FocusResult:
    """The whole history at each call and probe."""
    conversation = books.conversation
    tools = books.tools(conversation.tools) + PRIMING
    sizes = [books.ledger.upto(at) + tools for at in conversation.calls()]
    wanted = int(books.demands.values.sum())
    return FocusResult(
        WHOLE,
        conversation.id,
        calls=len(sizes),
        whole=sum(sizes),
        sent=sum(sizes),
        over=sum(size > limit for size in sizes),
        demands=wanted,
        grounded=wanted,
        recalls=[1.0 for each in asked if each.evidence],
        reachable=[1.0 for each in asked if each.answers],
    )


def _bound(books: ConversationIndex, asked: Sequence[_Asked], limit: int) -> FocusResult:
    """How much of each probe's evidence fits beside system messages, tool schemas and the question: the shortest first.

    Calls and results may be parted here, and nothing else is sent: no way within the limit keeps more.
    """
    conversation, count = books.conversation, books.counter.message
    found = FocusResult(BOUND, conversation.id)
    for each in asked:
        said = Messages.prefix(conversation.messages, each.stop)
        left = limit - PRIMING - books.tools(conversation.tools) - count(each.question)
        left -= books.ledger.total(books.structure.systems(said))
        kept = 0
        for tokens in sorted(0 if said[at].role == "system" else count(said[at]) for at in each.evidence):
            left -= tokens
            kept += left >= 0
        if each.evidence:
            found.recalls.append(kept / len(each.evidence))
    return found


def _cell(
    name: str,
    strategy: Strategy,
    books: ConversationIndex,
    asked: Sequence[_Asked],
    limit: int,
    models: Models,
    whole: FocusResult,
) -> FocusResult:
    found = FocusResult(name, books.conversation.id, calls=whole.calls, whole=whole.whole, demands=whole.demands)
    try:
        _replayed(found, strategy, books, limit, models)
        _probed(found, strategy, books, asked, models)
    except (UserError, Misfit) as error:
        found.failed = str(error)
    except Exception as error:  # a strategy of the user's own
        found.failed = f"{type(error).__name__}: {error}"
    return found


def _replayed(found: FocusResult, strategy: Strategy, books: ConversationIndex, limit: int, models: Models) -> None:
    """Every recorded call."""
    log = ContextLog(books.conversation.messages)
    with no_cycles():  # as in a run
        for step in replay(books.conversation, strategy, RecordedContext(books, models)):
            log.add(step)
            tokens = PRIMING + books.tools(step.context.tools) + books.ledger.total(step.context.messages)
            found.sent += tokens
            found.over += tokens > limit
            found.refused += any(isinstance(event, OverBudget) for event in step.events)
            found.micros.append(step.latency_ns / 1000)
    found.grounded = int(retained(books.demands, log.runs, log.written).sum())


def _probed(
    found: FocusResult, strategy: Strategy, books: ConversationIndex, asked: Sequence[_Asked], models: Models
) -> None:
    """Every probe at its place, after the calls before it. Its question is not part of what comes after it."""
    conversation = books.conversation
    place = {message.id: at for at, message in enumerate(conversation.messages)}
    desk = RecordedContext(books, models)
    view = strategy.start(desk)
    calls = [at for at in conversation.calls() if asked and at <= asked[-1].stop]
    waiting = list(reversed(calls))
    for each in asked:
        while waiting and waiting[-1] <= each.stop:
            at = waiting.pop()
            desk.turn_to(at)
            view(Context(Messages.prefix(conversation.messages, at), (), conversation.tools))
        history = Messages.prefix(conversation.messages, each.stop) + Messages.of((each.question,))
        sent = view(Context(history, (), conversation.tools)).messages
        here = {place.get(message.id, -1) for message in sent}
        written = [message for message in sent if message.id not in place and message.id != each.question.id]
        if each.evidence:
            found.recalls.append(sum(at in here for at in each.evidence) / len(each.evidence))
        if each.answers:
            found.reachable.append(float(bool(here & each.answers) or _says(written, each.probe)))
        desk.taken()


def _says(written: Sequence[Message], probe: Probe) -> bool:
    """Whether what a strategy wrote has an accepted answer."""
    return bool(written) and len(places([probe.answers], [message.text for message in written])[0]) > 0


def rows(cells: Sequence[FocusResult]) -> list[FocusRow]:
    """The figures of each way, over the conversations that none failed in."""
    lost = {cell.conversation for cell in cells if cell.failed}
    names = dict.fromkeys(cell.way for cell in cells)
    left = [cell for cell in cells if cell.conversation not in lost]
    return [_row(name, [cell for cell in left if cell.way == name]) for name in names]


def _row(way: str, cells: Sequence[FocusResult]) -> FocusRow:
    whole, demands = sum(cell.whole for cell in cells), sum(cell.demands for cell in cells)
    nothing = Missing("undefined", "the bound is for probes") if way == BOUND else Missing("undefined", "no calls")
    return FocusRow(
        way,
        sum(cell.calls for cell in cells),
        sum(cell.sent for cell in cells),
        sum(cell.sent for cell in cells) / whole if whole else nothing,
        sum(cell.over for cell in cells),
        sum(cell.refused for cell in cells),
        _mean(cells, [cell.recalls for cell in cells]),
        _mean(cells, [cell.reachable for cell in cells]),
        sum(cell.grounded for cell in cells) / demands if demands else nothing,
        latency([each for cell in cells for each in cell.micros]),
        sum(len(cell.recalls) for cell in cells),
    )


def _mean(cells: Sequence[FocusResult], values: Sequence[Sequence[float]]) -> Interval | Missing:
    groups = [cell.conversation for cell, some in zip(cells, values, strict=True) for _ in some]
    return interval([each for some in values for each in some], groups)
