"""Requests of a log that belong together."""

from __future__ import annotations

from ctxbench.scenarios.errors import Place
from ctxbench.scenarios.model import Call, Message, Usage
from ctxbench.scenarios.readers.requests import LoggedRequest, series


def test_two_answers_in_a_row_are_two_calls() -> None:
    """A request that goes on right after an answer has an answer of its own, and both keep what they reported."""
    user = Message("m0", "user", "Go")
    first, second = Message("m1", "assistant", "one"), Message("m2", "assistant", "two")
    answers = [
        Message(m.id, m.role, m.text, call=Call("gpt", usage=Usage(10 + at))) for at, m in enumerate((first, second))
    ]
    place = Place("log.jsonl", 1)
    log = [LoggedRequest(place, (user,), answers[0]), LoggedRequest(place, (user, first), answers[1])]
    [together] = series(log)
    _, conversation = together.conversation("log")
    assert conversation.messages == (user, *answers)
    assert list(conversation.calls()) == [1, 2]
