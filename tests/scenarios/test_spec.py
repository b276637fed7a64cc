"""Strategies and readers written as text."""

from __future__ import annotations

import pytest
from ctxbench.scenarios.errors import SpecError
from ctxbench.strategies.chain import Chain, parse, spec
from ctxbench.strategies.none import Everything
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
        ("window(max_token=8)", "no parameter 'max_token'; did you mean 'max_tokens'"),
        ("window(bogus=8)", "it takes max_tokens, messages, model, reserve, user_first"),
        ("none(x=1)", "it takes none"),
        ("window(max_tokens='8k')", "max_tokens='8k': Expected `int | null`, got `str`"),
        ("window(max_tokens=0)", "at least 1"),
        ("window(max_tokens=" + "9" * 30 + ")", "below 2**53"),
        ("window(max_tokens=8, reserve=1)", "reserve must be"),
        ("window", "give max_tokens, messages or model"),
        ("window(8000)", "name=value"),
        ("window(max_tokens=8, max_tokens=9)", "a parameter stands twice"),
        ("window(max_tokens=__import__('os'))", "not a plain value"),
        ("window(model='gpt-4oo')", "unknown model 'gpt-4oo'; did you mean"),
        ("summary(language='fr')", "Invalid enum value 'fr'; it is one of 'zh', 'en'"),
        ("smart(keep='hihg')", "it is one of 'critical', 'high', 'medium', 'low'; did you mean 'high'"),
        ("layered(tiers=('working', 'shrot'))", "it is one of 'working', 'short', 'long'; did you mean 'short'"),
        ("summary(language=3)", "it is one of 'zh', 'en'"),
        ("summary(max_tokens=-100)", "max_tokens, levels and fan_in must be at least 1"),
        ("smart(window=0)", "window must be at least 1"),
        ("smart(max_summary_tokens=-1)", "max_summary_tokens and max_input_tokens must be at least 1"),
        ("smart(keywords=('',))", "keywords must not be empty"),
        ("layered(tiers=())", "tiers must name at least one"),
        ("layered(tiers=('long', 'long'))", "each once"),
        ("layered(ttl_hours=200)", "ttl_hours must be at most longest_ttl_hours"),
        ("cache_marks | window(messages=3)", "`cache_marks` must be the last of its chain"),
        ("none | cache_marks(marks=2) | none", "`cache_marks(marks=2)` must be the last of its chain"),
        ("a.b(c=1)", "cannot read this strategy"),
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
