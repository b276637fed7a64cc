"""Grounding retention: which values a call or an answer repeats, and whether they are still in what was sent."""

from collections import Counter

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxbench.metrics.grounding import Demands, by_row, demands, refetched, retained, said
from ctxbench.metrics.values import occurs
from ctxbench.scenarios.model import Conversation, Message, ToolCall
from tests.builders import answering, sent, talk, when


def using(name: str, call: str, **arguments: object) -> Message:
    """Build an assistant message with one tool call."""
    return Message(name, "assistant", calls=(ToolCall(call, "tool", msgspec.json.encode(arguments).decode()),))


def rows(found: Demands, kept: list[int] | None = None) -> list[tuple[int, str, str, int, int]]:
    """(step, of, kind, values, kept) of each row."""
    kept = kept if kept is not None else [-1] * len(found.of)
    return list(zip(found.step.tolist(), found.of, found.kind, found.values.tolist(), kept, strict=True))


BOOKING = talk(
    ("system", "Policy 7781: be polite to agent_9."),
    ("user", "I am mia_li_3668, and I want to go to Rome on 2024-05-20 for $327 at most."),
    using("m2", "c1", user="mia_li_3668", policy="7781", invented="zz_top_1", seats=1, ok=True, note=None),
    answering("m3", "c1", '{"reservation": "ZFA04Y", "price": 327, "bags": 12}'),
    using("m4", "c2", id="ZFA04Y", date="2024-05-20", price=327, to="Rome", note="go to Rome"),
    answering("m5", "c2", "booked"),
    ("assistant", "Booked ZFA04Y for $327.00 with 12 bags on 2024-05-20; see zz_top_1 and agent_9. Rome!"),
)
"""Messages 0–6; the model was called for 2, 4 and 6."""


def test_demands_by_hand() -> None:
    """What users and tools said counts; what the system prompt said or the agent invented does not, nor do trifles."""
    assert rows(demands(BOOKING)) == [
        (0, "call", "identifier", 1, -1),  # mia_li_3668
        (1, "call", "identifier", 1, -1),  # ZFA04Y
        (1, "call", "date", 1, -1),
        (1, "call", "number", 1, -1),  # 327
        (1, "call", "name", 1, -1),  # Rome
        (1, "call", "text", 1, -1),  # "go to Rome", as a whole
        (2, "answer", "identifier", 1, -1),
        (2, "answer", "number", 1, -1),  # 12; $327.00 is not written so before
        (2, "answer", "date", 1, -1),
    ]


def test_retained_by_hand() -> None:
    """Without the user's message the date, the name and the wish are gone; the price is still in the tool's result."""
    found = demands(BOOKING)
    runs = sent([(0, 2)], [(0, 1), (2, 4)], [(0, 1), (5, 6)])
    assert rows(found, by_row(found, retained(found, *when(found, runs))).tolist()) == [
        (0, "call", "identifier", 1, 1),
        (1, "call", "identifier", 1, 1),
        (1, "call", "date", 1, 0),
        (1, "call", "number", 1, 1),
        (1, "call", "name", 1, 0),
        (1, "call", "text", 1, 0),
        (2, "answer", "identifier", 1, 0),
        (2, "answer", "number", 1, 0),
        (2, "answer", "date", 1, 0),
    ]


def test_written_messages_keep_values() -> None:
    """A summary that the strategy wrote keeps what it says; so do the agent's own earlier arguments."""
    found = demands(BOOKING)
    summary = Message("s:1", "system", "mia_li_3668 has ZFA04Y.")
    runs = sent([(7, 8)], [(0, 1), (7, 8)], [(7, 8), (4, 5)])
    kept = by_row(found, retained(found, *when(found, runs, [summary]))).tolist()
    assert [(step, kind) for step, _, kind, _, count in rows(found, kept) if count] == [
        (0, "identifier"),
        (1, "identifier"),
        (2, "identifier"),
        (2, "date"),
    ]


@pytest.mark.parametrize(
    ("argument", "heard", "expected"),
    [
        ("/srv/app/main.py", "see /srv/app/main.py:12", {"path": 1}),
        ("cat /srv/a.py | grep 1234", "in /srv/a.py or 1234", {"path": 1, "number": 1}),
        ("cat /srv/a.py", "do: cat /srv/a.py", {"text": 1}),
        ("x" * 201, "x" * 201, {}),
        ("true", "it is true", {}),
        ("7", "7 of them", {}),
        ("a", "a", {}),
        ("--", "a -- b", {}),
        (["ABC-1", {"deep": "ABC-2"}], "ABC-1 and ABC-2", {"identifier": 2}),
        (["ABC-1", "ABC-1"], "ABC-1", {"identifier": 1}),
        (49.5, "for 49.5 now", {"number": 1}),
        ("1,250 USD", "it is 1250", {"number": 1}),
        ("王小明", "我是王小明。", {"name": 1}),
        ("line one\nline two", "said line one\nline two", {"text": 1}),
    ],
)
def test_leaves_of_arguments(argument: object, heard: str, expected: dict[str, int]) -> None:
    """Which arguments are demands, and of what kind."""
    found = demands(talk(("user", heard), using("m1", "c", value=argument)))
    assert dict(zip(found.kind, found.values.tolist(), strict=True)) == expected


SAID = st.lists(
    st.sampled_from(["ABC-1", "ABC-12", "2024-05-01", "45", "45.5", "/a/b.py", "北京", "Ana", "so"]), max_size=3
)


@st.composite
def conversations(draw: st.DrawFn) -> Conversation:
    """Short conversations in which everybody repeats the same few values."""
    made: list[Message] = []
    for at in range(draw(st.integers(1, 12))):
        role = draw(st.sampled_from(["user", "assistant", "calling", "tool", "system"]))
        values = draw(SAID)
        if role == "calling":
            made.append(using(f"m{at}", f"c{at}", one=values[:1], two=" ".join(values[1:])))
        elif role == "tool":
            made.append(answering(f"m{at}", "c", " ".join(values)))
        else:
            made.append(Message(f"m{at}", role, " and ".join(values)))  # type: ignore[arg-type]
    return Conversation("any", tuple(made))


@given(conversations(), st.data())
def test_equals_looking_at_every_message(conversation: Conversation, data: st.DataObject) -> None:
    """Rows and retention are what reading every message of every context gives; all of it sent keeps every demand."""
    messages = conversation.messages
    found, calls = demands(conversation), list(conversation.calls())
    written = [Message("s:0", "system", "\n".join(data.draw(SAID))), Message("s:1", "user", " ".join(data.draw(SAID)))]
    size = len(messages)
    steps = []
    for at in calls:
        spans = data.draw(st.lists(st.tuples(st.integers(0, at - 1), st.integers(1, at)), max_size=3))
        runs = [(start, stop) for start, stop in spans if start < stop]
        runs += [(size + n, size + n + 1) for n in data.draw(st.lists(st.integers(0, 1), max_size=2))]
        steps.append(runs)
    kept = by_row(found, retained(found, *when(found, sent(*steps), written)))
    everything = [*messages, *written]
    slow: Counter[tuple[int, str, str]] = Counter()
    slow_kept: Counter[tuple[int, str, str]] = Counter()
    for row, value in zip(found.row.tolist(), found.value.tolist(), strict=True):
        step, spellings = int(found.step[row]), found.spellings[value]
        says = [any(occurs(each, said(message)) for each in spellings) for message in everything]
        heard = [at for at in range(calls[step]) if says[at] and messages[at].role in ("user", "tool")]
        told = [at for at in range(calls[step]) if says[at] and messages[at].role == "system"]
        assert heard
        assert not told or min(heard) < min(told)
        key = (step, found.of[row], found.kind[row])
        slow[key] += 1
        slow_kept[key] += any(says[at] for start, stop in steps[step] for at in range(start, stop))
    keys = list(zip(found.step.tolist(), found.of, found.kind, strict=True))
    assert dict(zip(keys, found.values.tolist(), strict=True)) == dict(slow)
    assert dict(zip(keys, kept.tolist(), strict=True)) == {key: slow_kept[key] for key in slow}
    assert retained(found, *when(found, sent(*([(0, at)] for at in calls)))).all()


def test_what_is_read_again_by_hand() -> None:
    """At the second call the user's message lacks, which has three values; at the third two results: each once."""
    found = demands(BOOKING)
    runs = sent([(0, 2)], [(0, 1), (2, 4)], [(0, 1), (5, 6)])
    tokens = np.array([1, 20, 300, 4000, 50000, 600000, 7])
    # Identifier and number of the third call were last in message 3, its date in message 1.
    assert refetched(found, retained(found, *when(found, runs)), tokens, 3).tolist() == [0, 20, 4020]
    assert refetched(found, np.ones(len(found.row), bool), tokens, 3).tolist() == [0, 0, 0]
