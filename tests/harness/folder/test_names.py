"""Strategies' texts in a narrow column."""

from ctxbench.harness.engine.plan import DEFAULT_STRATEGIES
from ctxbench.harness.folder.schema import short_names


def test_the_last_parameters_are_left_out() -> None:
    """Of the longest stage first; what fits stays as it is."""
    long = "smart(window=300, system=60, first_turns=1) | window(max_tokens=800)"
    names = short_names([long, "window(max_tokens=8000)"], 50)
    assert names == {
        long: "smart(window=300, …) | window(max_tokens=800)",
        "window(max_tokens=8000)": "window(max_tokens=8000)",
    }
    assert short_names([long], 10) == {long: "smart(…) | window(…)"}


def test_no_two_strategies_share_a_name() -> None:
    """Where the shorter text would be the same, both are whole."""
    two = ["summary(threshold=6, every=4, max_tokens=100)", "summary(threshold=6, every=4, max_tokens=200)"]
    assert short_names(two, 34) == {text: text for text in two}
    assert len(set(short_names(DEFAULT_STRATEGIES, 34).values())) == len(DEFAULT_STRATEGIES)


def test_what_is_no_call_stays() -> None:
    """A file's strategy, quotes and brackets in values."""
    file, quoted = "'my folder/mine.py:Mine'", "tiered(policy='hybrid(profile=\"context\")', limit=4096)"
    assert short_names([file, quoted], 60) == {file: file, quoted: quoted}
    assert short_names([quoted], 50) == {quoted: "tiered(policy='hybrid(profile=\"context\")', …)"}
