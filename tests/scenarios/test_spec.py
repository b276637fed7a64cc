"""Strategies and readers written as text."""

from typing import Literal

import pytest

from ctxbench.scenarios.errors import SpecError
from ctxbench.scenarios.read import parse_format
from ctxbench.scenarios.spec import in_words
from ctxbench.strategies.bounds import Everything
from ctxbench.strategies.chain import Chain, parse, spec
from ctxbench.strategies.window import Window


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("none", "none"),
        (" none( ) ", "none"),
        ("window(max_tokens=8000)", "window(max_tokens=8000)"),
        ("window(reserve=0.1, max_tokens=8_000)", "window(max_tokens=8000)"),
        ("window(messages=20, reserve=0)", "window(messages=20, reserve=0.0)"),
        ("none|window( max_tokens = 9 )", "none | window(max_tokens=9)"),
        ("window(model='gpt-4')", "window(model='gpt-4')"),
    ],
)
def test_prints_what_it_parsed(text: str, printed: str) -> None:
    """A strategy has one text, without its defaults, and that text parses to the same strategy."""
    made = parse(text)
    assert spec(made) == printed
    assert parse(printed) == made


def test_a_chain_is_its_stages() -> None:
    """`a | b | c` keeps its order."""
    chain = parse("none | window(max_tokens=5) | none")
    assert chain == Chain((Everything(), Window(max_tokens=5), Everything()))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("windw(max_tokens=8)", "unknown strategy 'windw'; did you mean 'window'"),
        ("xyzzy", " in all: ctxbench list strategies)"),
        ("window(max_token=8)", "no parameter 'max_token'; it takes max_tokens, messages, model,"),
        ("window(max_token=8)", "did you mean 'max_tokens'?"),
        ("none(x=1)", "it takes none"),
        ("window(max_tokens='8k')", "max_tokens must be a whole number or None, not '8k'"),
        ("window(max_tokens=0)", "max_tokens must be at least 1, not 0"),
        ("window(max_tokens=" + "9" * 30 + ")", "max_tokens is beyond 9,007,199,254,740,992"),
        ("window", "give max_tokens, messages or model"),
        ("window(8000)", "name=value"),
        ("window(max_tokens=8, max_tokens=9)", "a parameter stands twice"),
        ("window(max_tokens=__import__('os'))", "not a plain value"),
        ("window(model='gpt-4oo')", "unknown model 'gpt-4oo'; did you mean"),
        ("summary(language='fr')", "language must be 'auto', 'zh' or 'en', not 'fr'"),
        ("smart(keep='hihg')", "keep must be 'critical', 'high', 'medium' or 'low', not 'hihg'; did you mean 'high'"),
        ("layered(tiers=('working', 'shrot'))", "tiers must be a list, each 'working', 'short' or 'long', not"),
        ("smart(levels=())", "levels must be a list of 4, each a whole number, not ()"),
        ("smart(levels=(1, 2, 3, 4))", "levels go from critical down to low, not (1, 2, 3, 4)"),
        ("summary(max_tokens=1000)", "levels * max_summary_tokens, 500, do not fit a budget of 1000"),
        ("summary(keep=0.9)", "keep must be below trigger, 0.8, not 0.9"),
        ("summary(keep=0.0)", "keep must be above 0 and below 1, not 0.0"),
        ("summary(max_tokens=9, model='gpt-4o')", "not both: max_tokens=9, model='gpt-4o'"),
        ("retrieval(importance=2)", "strategy 'retrieval': importance must be at least 0 and at most 1, not 2.0"),
        ("archive(summary_chars=600)", "stored_chars=500 is less than summary_chars=600"),
        ("archive(keep_days=0)", "keep_days must be above 0 and below 1000000, not 0.0"),
        ("archive(keywords=('',))", "keywords must not be empty, nor any of them: ('',)"),
        ("smart(window=10)", "window=10 leaves no tokens for the history beside system=2000"),
        ("smart(window=3000)", "max_summary_tokens=500 does not fit window=3000: it must be below 200"),
        ("layered(tiers=())", "tiers must name at least one"),
        ("layered(tiers=('long', 'long'))", "each once"),
        ("layered(ttl_hours=200)", "ttl_hours must be at most longest_ttl_hours, 168.0, not 200.0"),
        ("cache_marks | window(messages=3)", "`cache_marks` must be the last of its chain"),
        ("none | cache_marks(marks=2) | none", "`cache_marks(marks=2)` must be the last of its chain"),
        ("a.b(c=1)", "unknown strategy 'a.b'"),
        ("a().b(c=1)", "cannot read this strategy"),
        ("none, window(messages=3) | cache_marks", "is more than one strategy: give each on its own"),
        ("none | ", "cannot read this strategy"),
        ("", "cannot read this strategy"),
        ("(" * 5000, "cannot read this strategy"),
    ],
)
def test_bad_text_says_what_to_do(text: str, said: str) -> None:
    """Each way to write a strategy wrong is one SpecError that names the place and the remedy."""
    with pytest.raises(SpecError) as error:
        parse(text)
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_an_instance_out_of_bounds_has_no_text() -> None:
    """A strategy that was built in Python is checked where it is printed, as every strategy of a run is."""
    with pytest.raises(SpecError, match="window: max_tokens must be at least 1, not 0"):
        spec(Window(max_tokens=0))


def test_an_unknown_format_says_which_there_are() -> None:
    """A format whose name is like none gets the first names, and the command that lists all."""
    with pytest.raises(SpecError, match=r"unknown format 'nope'; there are ai_sdk, aider, .*ctxbench list formats\)$"):
        parse_format("nope")


@pytest.mark.parametrize(
    ("hint", "words"),
    [
        (int | None, "a whole number or None"),
        (Literal["a"], "'a'"),
        (tuple[float, ...], "a list, each a number"),
        (list[str], "a list, each text in quotes"),
        (tuple[bool, bool], "a list of 2, each True or False"),
        (tuple[int, str], "tuple[int, str]"),
        (dict[str, int], "dict[str, int]"),
        (list, "a list"),
    ],
)
def test_a_type_in_words(hint: object, words: str) -> None:
    """What a parameter may be, said in words where there are some, else as the type is written."""
    assert in_words(hint) == words
