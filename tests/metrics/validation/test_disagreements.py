"""Why a prediction and a report disagree: each reason where the recording shows it, and only there."""

import pytest

from ctxbench.scenarios.model import Call, Conversation, Message
from tests.metrics.validation.recordings import MODEL, T0, call, compared, said


def reasons(*conversations: Conversation) -> list[str]:
    return [row.reason for row in compared(*conversations)]


@pytest.mark.parametrize(
    ("gap", "read", "reason"),
    [
        (60, 0, "unknown: gone before its lifetime, at a user's turn"),
        (290, 0, "TTL: gone in the last tenth of its lifetime"),
        (310, 5000, "TTL: still there after its lifetime"),
        (3000, 5000, "warmed by another run"),
        (60, 2000, "unknown: a shorter prefix was read"),
        (60, 5290, "warmed by another run"),
    ],
)
def test_by_the_gap(gap: float, read: int, reason: str) -> None:
    """A lifetime of five minutes, a second call some seconds after the first that reads something else."""
    assert reasons(said("talk", call(0, 5000, 0, 5000), call(gap, 5300, read, 5300 - read))) == ["", reason]


def test_a_first_call_that_reads() -> None:
    """Nobody in the recording wrote that."""
    assert reasons(said("talk", call(0, 5000, 1348, 3652))) == ["warmed by another run"]


def test_a_call_that_was_stopped_may_have_written() -> None:
    """It reports nothing; what the next call reads ends in its prompt."""
    stopped = Call(MODEL, started=T0 + 10, stop="aborted")
    talk = said("talk", call(0, 5000, 0, 5000), stopped, call(20, 5300, 5100, 200))
    assert reasons(talk) == ["", "warmed by a call that reports no usage"]


def test_requests_side_by_side() -> None:
    """The second begins before the first is answered, and reads all the same what that writes."""
    one, two = said("one", call(0, 5000, 0, 5000), asks="x"), said("two", call(1, 5000, 5000, 0), asks="x")
    assert reasons(one, two) == ["", "parallel requests: what another one wrote was there before it was answered"]


def test_requests_that_may_have_been_side_by_side() -> None:
    """Without starts it seems to come after the first, and reads nothing."""
    one, two = (said(name, call(0, 5000, 0, 5000), asks="x") for name in ("one", "two"))

    def answered(talk: Conversation, at: float) -> Conversation:
        asked, answer = talk.messages
        made = Message(answer.id, "assistant", answer.text, time=T0 + at, call=call(None, 5000, 0, 5000))
        return Conversation(talk.id, (asked, made))

    assert reasons(answered(one, 2), answered(two, 3)) == [
        "",
        "parallel requests: what another one wrote was not there yet",
    ]


def test_a_prompt_that_is_shorter_than_the_one_before() -> None:
    """Something was taken out of it, though the recording does not say so."""
    talk = said("talk", call(0, 5000, 0, 5000), call(60, 4800, 0, 4800))
    assert reasons(talk) == ["", "changed prefix: the prompt is shorter than the one before"]
