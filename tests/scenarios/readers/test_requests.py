"""Requests of a log that belong together."""

from ctxbench.scenarios.errors import Place
from ctxbench.scenarios.model import Call, Compaction, Mark, Message, Role, Usage
from ctxbench.scenarios.readers.requests import LoggedCall, series


def test_two_answers_in_a_row_are_two_calls() -> None:
    """A request that goes on right after an answer has an answer of its own, and both keep what they reported."""
    user = Message("m0", "user", "Go")
    first, second = Message("m1", "assistant", "one"), Message("m2", "assistant", "two")
    answers = [
        Message(m.id, m.role, m.text, call=Call("gpt", usage=Usage(10 + at))) for at, m in enumerate((first, second))
    ]
    place = Place("log.jsonl", 1)
    log = [LoggedCall(place, (user,), answers[0]), LoggedCall(place, (user, first), answers[1])]
    [together] = series(log)
    _, conversation = together.conversation("log")
    assert conversation.messages == (user, *answers)
    assert list(conversation.calls()) == [1, 2]


PLACE = Place("log.jsonl", 1)


def told(*messages: tuple[Role, str]) -> tuple[Message, ...]:
    return tuple(Message(f"m{at}", role, text) for at, (role, text) in enumerate(messages))


def logged(*messages: tuple[Role, str], answer: str, marks: tuple[Mark, ...] = ()) -> LoggedCall:
    call = Call("gpt", marks=marks)
    return LoggedCall(PLACE, told(*messages), Message(f"m{len(messages)}", "assistant", answer, call=call))


SYSTEM, FIRST, SECOND, THIRD = ("system", "Help."), ("user", "First?"), ("user", "Second?"), ("user", "Third?")
ONE, TWO = ("assistant", "The first answer of all."), ("assistant", "The second answer, which is longer than forty.")
NOTES = ("user", "Notes: the first was answered.")


def test_a_request_that_leaves_messages_out_goes_on_with_the_conversation() -> None:
    """A summary in the place of the first turn is a compaction; calls, later requests and marks keep their places."""
    log = [
        logged(SYSTEM, FIRST, answer=ONE[1]),
        logged(SYSTEM, FIRST, ONE, SECOND, answer=TWO[1]),
        logged(SYSTEM, NOTES, SECOND, TWO, THIRD, answer="Three.", marks=(Mark("m2"), Mark("m1"))),
        logged(SYSTEM, NOTES, SECOND, TWO, THIRD, ("assistant", "Three."), ("user", "Fourth?"), answer="Four."),
    ]
    [together] = series(log)
    _, conversation = together.conversation("log")
    texts = [message.text for message in conversation.messages]
    assert texts == ["Help.", "First?", ONE[1], "Second?", TWO[1], "Third?", "Three.", "Fourth?", "Four."]
    assert [message.id for message in conversation.messages] == [f"m{at}" for at in range(9)]
    assert conversation.compactions == (Compaction("m5", NOTES[1], "m3"),)
    assert list(conversation.calls()) == [2, 4, 6, 8]
    calls = [conversation.messages[at].call for at in conversation.calls()]
    assert all(calls)
    assert calls[2] == Call("gpt", marks=(Mark("m3"),))  # the mark at the notes has no place in the history


def test_a_second_compaction_keeps_what_is_left_of_the_history() -> None:
    """What is kept is named by its place in the history, also where an earlier summary is left out."""
    log = [
        logged(SYSTEM, FIRST, ONE, SECOND, answer=TWO[1]),
        logged(SYSTEM, NOTES, TWO, THIRD, answer="The third answer is also longer than forty characters."),
        logged(
            SYSTEM,
            ("assistant", "The third answer is also longer than forty characters."),
            ("user", "Fourth?"),
            answer="Four.",
        ),
    ]
    [together] = series(log)
    _, conversation = together.conversation("log")
    assert conversation.compactions == (Compaction("m5", NOTES[1], "m4"), Compaction("m7", "", "m6"))


def test_another_conversation_is_no_compaction() -> None:
    """The same short answer to another question, and a request that shares the system prompt alone, begin anew."""
    log = [
        logged(SYSTEM, FIRST, answer="Yes."),
        logged(SYSTEM, SECOND, ("assistant", "Yes."), THIRD, answer="No."),
        logged(SYSTEM, ("user", "Zeroth?"), ONE, SECOND, answer=TWO[1]),
        logged(SYSTEM, THIRD, answer="No."),
    ]
    assert [len(group.places) for group in series(log)] == [1, 1, 1, 1]
