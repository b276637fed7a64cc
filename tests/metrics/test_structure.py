"""Structural faults: worked by hand, and against reading every message."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxbench.harness.invariants import messages
from ctxbench.harness.replay import ContextLog, Step
from ctxbench.metrics.measure import MeasuredResult, measure
from ctxbench.metrics.structure import FAULTS, Structure
from ctxbench.metrics.tokens import PRIMING, Ledger, TokenCounter
from ctxbench.scenarios.model import Media, Message
from ctxbench.scenarios.view import Messages, Span
from ctxbench.strategies.base import Context
from tests.builders import answering, calling, stretches

COUNTER = TokenCounter()
SYSTEM, USER, CALLING = Message("s", "system", "Be brief."), Message("u", "user", "Do it"), calling("a", "c1", "c2")
ONE, TWO, DONE = answering("t1", "c1"), answering("t2", "c2"), Message("d", "assistant", "Done")
SAID = (SYSTEM, USER, CALLING, ONE, TWO, DONE)


def measured(said: tuple[Message, ...], sent: list[Messages]) -> dict[str, list[int]]:
    """Return the columns of a result in which these contexts were sent after all messages."""
    log = ContextLog(said)
    for each in sent:
        log.add(Step(len(said), Context(each), 0))
    structure = Structure(said)
    structure.advance(len(said))
    tools = [0] * len(sent)
    found = measure([MeasuredResult(said, log.written, Ledger(COUNTER, said), structure, log.runs, tools, 0, None)])
    return {name: values.tolist() for name, values in found.items() if not isinstance(values, tuple)}


SUMMARY, EMPTY = Message("w", "user", "What came before: …"), Message("w", "assistant", "")
LATE = (USER, CALLING, ONE, DONE, TWO)
BLANK = (
    USER,
    Message("b", "user", " \n"),
    Message("e", "assistant", ""),
    Message("i", "user", media=(Media("image"),)),
)


@pytest.mark.parametrize(
    ("sent", "said", "found"),
    [
        (SAID, SAID, {}),
        # Parallel results may come in any order among themselves; only their place in the recording is noted.
        ((SYSTEM, USER, CALLING, TWO, ONE, DONE), SAID, {"misordered": 1}),
        # A window that starts between call and results holds two orphans, and no user.
        ((SYSTEM, ONE, TWO, DONE), SAID, {"orphan_results": 2, "no_user": 1, "not_user_first": 1}),
        ((SYSTEM, USER, CALLING, ONE, DONE), SAID, {"unanswered_calls": 1}),
        ((SYSTEM, USER, CALLING, ONE), SAID, {"unanswered_calls": 1}),
        # A result after another message answers nothing: providers refuse both.
        (LATE, LATE, {"orphan_results": 1, "unanswered_calls": 1}),
        ((), SAID, {"dropped_system": 1, "no_user": 1, "empty": 1}),
        ((SYSTEM,), SAID, {"no_user": 1, "empty": 1}),
        # White space alone is blank; a tool's empty result, a call without text and an image are not.
        ((*BLANK, CALLING, ONE, answering("t2", "c2", "")), BLANK, {"blank_messages": 2}),
        # A message of the strategy's own counts as user, as blank, as anything.
        ((SYSTEM, SUMMARY, DONE), SAID, {}),
        ((SYSTEM, USER, EMPTY), SAID, {"blank_messages": 1}),
    ],
)
def test_faults_by_hand(sent: tuple[Message, ...], said: tuple[Message, ...], found: dict[str, int]) -> None:
    """A whole history has none; what is cut off, late, blank or missing is named and counted."""
    columns = measured(said, [Messages.of(sent)])
    assert {name: columns[name][0] for name in FAULTS if columns[name][0]} == found


def obvious(sent: list[Message], places: list[int], said: tuple[Message, ...]) -> dict[str, int]:
    """Every message read, nothing remembered of the recording."""
    open_calls: list[str] = []
    orphans = unanswered = 0
    for message in sent:
        if message.role == "tool":
            if message.answers in open_calls:
                open_calls.remove(message.answers)
            else:
                orphans += 1
        else:
            unanswered += len(open_calls)
            open_calls = [call.id for call in message.calls]
    spoken = [m for m in sent if m.role != "system"]
    blank = [m.role != "tool" and not m.calls and not m.media and not m.text.strip() for m in sent]
    return {
        "orphan_results": orphans,
        "unanswered_calls": unanswered + len(open_calls),
        "blank_messages": sum(blank),
        "dropped_system": max(
            0, sum(m.role == "system" for m in said) - sum(said[at].role == "system" for at in places)
        ),
        "no_user": int(not any(m.role == "user" for m in sent)),
        "not_user_first": int(bool(spoken) and spoken[0].role != "user"),
        "empty": int(not spoken),
        "messages_sent": len(sent),
        "tokens_sent": sum(map(COUNTER.message, sent)) + PRIMING,
        "turn": sum(m.role == "user" for m in said),
    }


@given(st.data())
def test_equals_reading_every_message(data: st.DataObject) -> None:
    """Any contexts of any conversation, in any order, with messages written between: all is as if read one by one."""
    said = data.draw(messages())
    sent, expected, disorder = list[Messages](), list[dict[str, int]](), list[bool]()
    for _ in range(data.draw(st.integers(0, 3))):
        made, places, plain = Messages(), list[int](), list[Message]()
        for start, stop in data.draw(stretches(said)):
            made = made + Messages((Span(said, start, stop),))
            places += range(start, stop)
            plain += said[start:stop]
            if data.draw(st.booleans()):
                role = data.draw(st.sampled_from(["system", "user", "assistant", "tool", "calling"]))
                written = (
                    calling("w", "x")
                    if role == "calling"
                    else Message("w", role, "it", answers="x" if role == "tool" else None)
                )
                made, plain = made + (written,), [*plain, written]
        sent.append(made)
        expected.append(obvious(plain, places, said))
        disorder.append(places != sorted(set(places)))
    found = measured(said, sent)
    for at, each in enumerate(expected):
        assert {name: found[name][at] for name in each} == each
        assert bool(found["misordered"][at]) == disorder[at]
    before: list[Message] = []
    for at, context in enumerate(map(list, sent)):
        same = next(
            (n for n, (a, b) in enumerate(zip(before, context, strict=False)) if a != b), min(len(before), len(context))
        )
        assert found["kept"][at] == same
        assert found["tokens_kept"][at] == (sum(map(COUNTER.message, context[:same])) if at else 0)
        before = context


def _apart(found: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the spans in order, without those that overlap an earlier one."""
    made: list[tuple[int, int]] = []
    for start, stop in sorted(found):
        if not made or start >= made[-1][1]:
            made.append((start, stop))
    return made


def _sent(said: tuple[Message, ...], spans: list[tuple[int, int]]) -> tuple[Messages, list[Message]]:
    """Return spans of the recording as they are sent, and as plain messages."""
    made = Messages(tuple(Span(said, start, stop) for start, stop in spans))
    return made, [message for start, stop in spans for message in said[start:stop]]


@given(st.data())
def test_whole_leaves_out_exactly_the_cut_off_results(data: st.DataObject) -> None:
    """whole() drops the results whose call is not among the messages, and nothing else."""
    said = data.draw(messages())
    made, plain = _sent(said, _apart(data.draw(stretches(said))))
    calls = {call.id for message in plain for call in message.calls}
    kept = [message for message in plain if message.role != "tool" or message.answers in calls]
    assert list(Structure(said).whole(made)) == kept


@given(st.data())
def test_systems_are_the_system_messages(data: st.DataObject) -> None:
    """systems() finds every system message, in order."""
    said = data.draw(messages())
    made, plain = _sent(said, data.draw(stretches(said)))
    assert list(Structure(said).systems(made)) == [m for m in plain if m.role == "system"]
