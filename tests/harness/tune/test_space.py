"""Strategies with ? for values, the values that are tried, and which settings are drawn."""

import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxbench.harness.tune.space import (
    BATCH,
    Choices,
    Numbers,
    SearchedStrategy,
    SearchSpace,
    Trial,
    batch,
    check,
    searched,
    space,
)
from ctxbench.metrics.frontier import Point
from ctxbench.scenarios.errors import MissingExtra, SpecError

LONGEST = {"max_tokens": 64_000, "messages": 100}


def ranges(text: str) -> dict[str, str]:
    """The ranges of a strategy's free parameters, as they are written."""
    return {name: str(each) for name, each in space(searched(text), LONGEST).ranges.items()}


def test_ranges_that_follow() -> None:
    """By hand: of the longest conversation, around a default, a share, both, each that there is."""
    assert ranges("window(max_tokens=?)") == {"max_tokens": "1000..64000:log"}
    assert ranges("window(messages=?)") == {"messages": "1..100:log"}
    assert ranges("window(max_tokens=8000, reserve=?)") == {"reserve": "0..0.99"}
    assert ranges("window(max_tokens=8000, user_first=?)") == {"user_first": "False,True"}
    assert ranges("facts(max_tokens=?)") == {"max_tokens": "250..16000:log"}
    assert ranges("facts(place=?)") == {"place": "'start','end'"}
    assert ranges("retrieval(importance=?)") == {"importance": "0..1"}


def test_a_range_is_cut_to_the_bounds_of_the_field(tmp_path: Path) -> None:
    """The range of 24 is 3 to 192 where the field has no bounds that cut it, in a file of one's own as well."""
    assert ranges("layered(ttl_hours=?)") == {"ttl_hours": "3..192:log"}
    source = """
from dataclasses import dataclass
from typing import Annotated
from msgspec import Meta

@dataclass(frozen=True, slots=True)
class Newest:
    free: int = 24
    bound: Annotated[int, Meta(ge=10, le=50)] = 24
    share: float = 0.5
    def start(self, services):
        return lambda context: context
"""
    (tmp_path / "mine.py").write_text(source)
    found = ranges(f"{tmp_path}/mine.py:Newest(free=?, bound=?, share=?)")
    assert found == {"free": "3..192:log", "bound": "12..48:log", "share": "0.0625..4:log"}


def test_ends_that_are_not_the_strategys() -> None:
    """Below 1 `every` takes nothing, beyond 8 it does; of all of the longest conversation there is no more."""
    found = searched("summary(every=?)")
    assert space(found, LONGEST).beyond == {"every": (8,)}
    found = searched("window(max_tokens=?, reserve=?)")
    assert space(found, LONGEST).beyond == {"max_tokens": (), "reserve": ()}
    assert space(searched("window(max_tokens=?[500..2000])"), LONGEST).beyond == {"max_tokens": (500, 2000)}


def test_ranges_that_are_given() -> None:
    """They count instead, ends and scale and values as written; a bracket within quotes closes nothing."""
    assert ranges("archive(thread=?[']', 'a'], threshold=?[1..9])") == {"thread": "']','a'", "threshold": "1..9"}
    assert ranges("window(max_tokens=?[500..2000])") == {"max_tokens": "500..2000"}
    assert ranges("window(max_tokens=?[500..2000:log])") == {"max_tokens": "500..2000:log"}
    assert ranges("window(max_tokens=?[500,2000])") == {"max_tokens": "500,2000"}
    assert ranges("archive(trigger=?['model','keyword'])") == {"trigger": "'model','keyword'"}
    assert ranges("facts(similarity=?[0..1])") == {"similarity": "0..1"}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("window(max_tokens=?[9..2])", "9 is more than 2"),
        ("window(max_tokens=?[0..2:log])", "begins above 0"),
        ("window(max_tokens=?[1..2:lin])", "'lin' is no scale"),
        ("window(max_tokens=?[1..x])", "or plain values"),
        ("window(max_tokens=?[True..2])", "both ends must be numbers"),
        ("window(max_tokens=?[1..1e999])", "no number may be beyond"),
        ("archive(trigger=?[1..2])", "trigger is no number"),
        ("window(max_tokens=?[1..2.5])", "max_tokens takes whole numbers"),
        ("window(max_tokens=?[0..9])", "max_tokens must be at least 1"),
        ("window(reserve=?[0..1])", "reserve must be at least 0 and below 1"),
    ],
)
def test_ranges_that_are_none(text: str, says: str) -> None:
    """Each is an error that has what was written."""
    with pytest.raises(SpecError, match=says) as error:
        ranges(text)
    assert text[text.index("(") + 1 : -1] in str(error.value)


def test_a_range_that_does_not_follow() -> None:
    """Texts and lists have none, nor numbers without a default: the error says how to give it."""
    for text in ("window(model=?)", "archive(keywords=?)", "facts(limit=?)"):
        with pytest.raises(SpecError, match=r"give it, \w+=\?\[low\.\.high\]"):
            ranges(text)


@given(st.integers(0, 10**6), st.integers(0, 10**6), st.floats(0, 1))
def test_what_is_rounded_stays_within(low: int, more: int, at: float) -> None:
    """Few digits, never outside the range, and the same again."""
    for whole in (True, False):
        made = Numbers(low, low + more, False, whole)
        value = made.rounded(low + at * more)
        assert made.holds(value)
        assert made.rounded(value) == value
        assert isinstance(value, int) == whole


def test_sizes() -> None:
    """What can be counted: whole numbers as they are tried, and choices; True is not 1."""
    assert Numbers(1, 9, False, True).values() == list(range(1, 10))
    assert Numbers(1000, 1019, False, True).values() == [1000, 1010, 1019]
    assert Numbers(0, 1, False, False).values() is None
    assert Choices((False, True)).values() == [False, True]
    assert not Choices((False, True)).holds(1)


def test_one_free_parameter() -> None:
    """Fixed parameters stay, free ones are filled in, and the text is the one that a run has."""
    found = searched("window(max_tokens = ?, reserve=0.2)")
    assert [(each.name, each.default) for each in found.free] == [("max_tokens", None)]
    assert found.at({"max_tokens": 8000}) == "window(max_tokens=8000, reserve=0.2)"


def test_defaults_are_not_written() -> None:
    """A value that is the default gives the same text as none."""
    found = searched("summary(threshold=?, every=5)")
    assert found.at({"threshold": 20}) == found.at({}) == "summary(every=5)"


def test_names_in_a_chain() -> None:
    """A parameter has its stage's name only where another has its name, and a number where the stages are alike."""
    names = [each.name for each in searched("summary(every=?, max_tokens=?) | window(max_tokens=?)").free]
    assert names == ["every", "summary.max_tokens", "window.max_tokens"]
    found = searched("window(messages=?) | window(messages=?)")
    assert [each.name for each in found.free] == ["1.messages", "2.messages"]
    values = {"1.messages": 9, "2.messages": 4}
    assert found.at(values) == "window(messages=9) | window(messages=4)"


def test_a_question_mark_in_a_text_is_a_text() -> None:
    """Only a value that is ? alone is free."""
    found = searched("archive(threshold=?, thread='why = ?')")
    assert [each.name for each in found.free] == ["threshold"]
    assert found.at({"threshold": 500}) == "archive(threshold=500, thread='why = ?')"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("window(max_tokens=8000)", "nothing is to be found in .*write name=.*window takes max_tokens, messages"),
        ("window(maxtokens=?)", "has no parameter 'maxtokens'.*did you mean 'max_tokens'"),
        ("windw(max_tokens=?)", "unknown strategy 'windw'; did you mean 'window'"),
        ("window(max_tokens=?", "cannot read this strategy"),
        ("archive_window(max_tokens=?)", "recipe 'archive_window' takes no parameters"),
        ("window(?)", "cannot read this strategy"),
    ],
)
def test_what_cannot_be_searched(text: str, says: str) -> None:
    """Each is an error that says what to write."""
    with pytest.raises(SpecError, match=says):
        searched(text)


SEARCH = searched("window(max_tokens=?, reserve=?)")
SPACE = space(SEARCH, {"max_tokens": 64_000, "messages": 9})


def drawn(trials: int, of: SearchSpace = SPACE, seed: int = 0, search: SearchedStrategy = SEARCH) -> list[Trial]:
    """Trials whose cost is the first parameter, and whose quality is best with a last one of 0.3."""
    made: list[Trial] = []
    while len(made) < trials:
        for each in batch(search, of, made, seed, trials):
            first, *_, last = [float(str(value)) for value in (0, *each.values.values())][-2:]
            made.append(each._replace(point=Point(first, 1 - abs(last - 0.3))))
    return made[:trials]


def test_the_same_seed_gives_the_same_trials() -> None:
    """All different from each other; another seed gives others."""
    one, two = (drawn(2 * BATCH) for _ in range(2))
    settings = [each.name for each in one]
    assert settings == [each.name for each in two]
    assert len(set(settings)) == len(settings)
    assert settings != [each.name for each in drawn(2 * BATCH, seed=1)]


def test_it_begins_with_the_defaults() -> None:
    """Where every free parameter has one."""
    search = searched("summary(threshold=?, every=?)")
    made = batch(search, space(search, {}), [], 0, 20)
    assert made[0].name == "summary"


def test_a_small_space_is_gone_through() -> None:
    """Six settings and ten trials: each once, then no more."""
    search = searched("window(max_tokens=?[500, 900, 1000], reserve=?[0.1, 0.2])")
    small = space(search, {})
    made = drawn(6, small, search=search)
    assert len({each.name for each in made}) == 6
    assert batch(search, small, made, 0, 10) == []


def test_without_optuna(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names the extra."""
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(MissingExtra, match=r"pip install 'ctxbench\[tune\]'"):
        check()
