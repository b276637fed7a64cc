"""The extractive summary: budget, order, what it prefers, and how long it takes."""

from hypothesis import example, given
from hypothesis import strategies as st

from ctxbench.metrics.extract import extract
from ctxbench.metrics.tokens import TokenCounter

count = TokenCounter().text


def by_words(text: str) -> int:
    """Count in a way that is easily checked by hand."""
    return len(text.split())


def test_prefers_decisions_and_values() -> None:
    """Of four sentences of eight words, the two that decide, constrain and name things are kept, in their order."""
    talk = [
        "Oh it was really such a lovely day. We decided to ship order #W123 on 2024-05-01.",
        "Well anyway that is how these things go. The budget must never exceed $4,500 for Ana.",
    ]
    assert extract(talk, 16, by_words) == (
        "We decided to ship order #W123 on 2024-05-01.\nThe budget must never exceed $4,500 for Ana."
    )


def test_says_nothing_twice() -> None:
    """Of sentences that say the same, one is kept, though there is room for all."""
    talk = ["The server is db-7.", "The server is db-7.", "So the server is db-7.", "Ana has the key."]
    assert extract(talk, 100, count) == "The server is db-7.\nAna has the key."


def test_keeps_all_that_differs_if_it_fits() -> None:
    """With room enough nothing is lost."""
    talk = ["Alpha is first.", "Beta is second.\nGamma is third."]
    assert extract(talk, 100, count) == "Alpha is first.\nBeta is second.\nGamma is third."


def test_cuts_a_sentence_that_is_too_long_between_words() -> None:
    """Where no sentence fits, the start of one is given, and no word is cut."""
    assert extract(["one two three four five six"], 3, by_words) == "one two three"
    assert extract(["我们决定把服务器部署在北京机房"], 4, len) == "我们决定"


def test_nothing_where_nothing_fits() -> None:
    """No budget, or a budget too small for one character, has no summary."""
    assert extract(["Hello there."], 0, count) == ""
    assert extract(["🧑‍🚀"], 1, lambda text: 2 * len(text)) == ""


TEXTS = st.lists(st.text(alphabet="abcdefg 12345.!。，你好王的\n", max_size=120), max_size=12)


@example(["1."], 1, TokenCounter().text)
@given(TEXTS, st.integers(1, 60), st.sampled_from([count, by_words, len, lambda text: len(text) // 4]))
def test_laws(texts: list[str], budget: int, counter) -> None:  # type: ignore[no-untyped-def]
    """The budget is kept by any counter; its lines are the material's; the same again; empty only of blank."""
    found = extract(texts, budget, counter)
    assert counter(found) <= budget
    assert found == extract(texts, budget, counter)
    material = "\n".join(texts)
    assert all(line in material for line in found.splitlines())
    assert bool(found) == any(text.strip() for text in texts) or budget < counter("你")
