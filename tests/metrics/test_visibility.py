"""Kept values, counted the plain way, and the tool results that calls use, by hand."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctxbench.metrics.grounding import demands, lines_of, said
from ctxbench.metrics.measure import Runs, stretches
from ctxbench.metrics.visibility import RECENT, counted, given_values, used_results, visible
from ctxbench.scenarios.model import Conversation, Message, ToolCall

WORDS = ["/srv/app/main.py", "ORD-88121", "warehouse", "457", "Kitchener", "12", "__in_it_", "仓库里货物数量."]
ROLES = st.sampled_from(["system", "user", "assistant", "tool"])
TEXTS = st.lists(st.sampled_from(WORDS), max_size=4).map(" ".join)


def contexts(steps: list[tuple[int, list[tuple[int, int]]]]) -> Runs:
    """Return runs of some steps, each with the number of messages before it."""
    runs = Runs()
    for at, spans in steps:
        runs.at.append(at)
        runs.size.append(len(spans))
        runs.start.extend(start for start, _ in spans)
        runs.stop.extend(stop for _, stop in spans)
    return runs


def values_of(text: str) -> set[str]:
    """Return the values of a text as a plain reading finds them."""
    words = (word.rstrip("./@:-") for word in re.findall(r"[^\W_][\w./@:-]*", text))
    return {word for word in words if len(word) >= 6 or (len(word) >= 3 and word.isdecimal())}


@pytest.mark.parametrize("more", ["", "仓库里的货物数量"])
def test_what_is_a_value(more: str) -> None:
    """Words, paths and identifiers of six characters are values, numbers from three digits on, others are not."""
    text = f"Open /srv/app/main.py: line 457 of ORD-88121, at 12. {more} small."
    values = {"srv/app/main.py", "457", "ORD-88121", *[more] * bool(more)}
    assert values_of(text) == values
    found = given_values([Message("m", "user", text)])
    assert {number for word in values for number in found.find(word)} == set(range(len(found.first)))
    assert len(found.first) == len(values)


@settings(max_examples=150, deadline=None)
@given(
    said_by=st.lists(st.tuples(ROLES, TEXTS), min_size=1, max_size=14),
    written=st.lists(TEXTS, max_size=2),
    data=st.data(),
)
def test_as_counted_plainly(said_by: list[tuple[str, str]], written: list[str], data: st.DataObject) -> None:
    """Any contexts have as many values in view as a plain reading of each message finds, for any runs."""
    messages = [
        Message(str(at), role, text, answers="c" if role == "tool" else None) for at, (role, text) in enumerate(said_by)
    ]  # type: ignore[arg-type]
    extra = [Message(f"w{at}", "user", text) for at, text in enumerate(written)]
    numbered, places = [*messages, *extra], st.integers(0, len(messages) + len(extra))
    ats = sorted(data.draw(st.lists(st.integers(0, len(messages)), min_size=1, max_size=5)))
    span = st.tuples(places, places).map(sorted).map(tuple)
    steps = [(at, data.draw(st.lists(span, max_size=3))) for at in ats]
    first: dict[str, tuple[int, str]] = {}
    for at, message in enumerate(messages):
        for word in values_of(said(message)):
            first.setdefault(word, (at, message.role))
    plain = []
    for at, spans in steps:
        wanted = {word for word, (by, role) in first.items() if role in ("user", "tool") and by + RECENT < at}
        texts = [said(numbered[place]) for low, high in spans for place in range(low, high)]
        seen = set[str]().union(*map(values_of, texts))
        plain.append((len(wanted), len(wanted & seen)))
    size, runs, lines = len(messages), contexts(steps), lines_of(extra)
    sent = stretches(runs, size, lines)
    values, at = given_values(messages), np.array(ats)
    found = counted(values, at), visible(values, at, size, sent, lines)
    assert list(zip(*(column.tolist() for column in found), strict=True)) == plain


def test_sent_or_not() -> None:
    """A message is sent at a step if one of the step's runs has it, and stays up to the step that has it no more."""
    sent = stretches(contexts([(2, [(0, 2)]), (5, [(0, 1), (3, 5)]), (6, [(4, 6)]), (7, [])]), 7)
    messages, steps = np.array([1, 1, 4, 0, 0]), np.array([0, 1, 1, 0, 2])
    assert sent.until(messages, steps).tolist() == [1, 1, 3, 2, 2]


@pytest.mark.parametrize(("path", "used"), [("/srv/app/main.py", [3]), ("/srv/other.py", []), ("ORD-88121", [1])])
def test_the_results_that_a_call_uses(path: str, used: list[int]) -> None:
    """A call uses the tool result that last gave the value in its arguments; what nobody gave it does not use."""
    messages = (
        Message("0", "assistant", "", calls=(ToolCall("a", "ls", "{}"),)),
        Message("1", "tool", "/srv/app/main.py ORD-88121", answers="a"),
        Message("2", "assistant", "", calls=(ToolCall("b", "find", "{}"),)),
        Message("3", "tool", "/srv/app/main.py", answers="b"),
        Message("4", "assistant", "", calls=(ToolCall("c", "read", f'{{"path": "{path}"}}'),)),
        Message("5", "tool", "text", answers="c"),
    )
    talk = Conversation("talk", messages)
    assert used_results(talk, demands(talk)) == [[], [], [], [], used, []]
