"""What is written as text to MLflow, and what waits for it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ctxbench.harness.export.bench import metric_keys, name_of, parameters, prompts
from ctxbench.harness.export.mlflow import NOTE, Waiting, done, wait, waiting
from ctxbench.scenarios.secrets import without_secrets


def test_parameters_of_a_chain() -> None:
    """Each stage's by its name; the second of a name by its number; keys are hidden, in the text too."""
    found = parameters("window(max_tokens=9) | archive | window(max_tokens=3)")
    assert found["window.max_tokens"] == "9"
    assert found["window.2.max_tokens"] == "3"
    found = parameters("my.py:Mine(api_key='abc123', url='https://me:pw@host/x?token=ab12')")
    assert "abc123" not in "".join(found.values())
    assert "pw" not in "".join(found.values())
    assert "ab12" not in "".join(found.values())
    assert found["strategy"].startswith("my.py:Mine(api_key='***'")


def test_names() -> None:
    """A bill's model is a group of its own; what MLflow takes in no name is replaced."""
    assert name_of("cost(openai/gpt-4o@2024)") == "cost/openai/gpt-4o_2024"
    assert name_of("answer_quality(offline, rules)") == "answer_quality/offline/rules"
    assert name_of("context_recall") == "context_recall"


def test_a_figure_s_name_does_not_change_with_the_prompt() -> None:
    """The digest of the grader's prompt is a tag; it stays in the name where two figures differ in nothing else."""
    old, new, other = (f"answer_quality(m, llm(model='g', prompt='{digest}'))" for digest in ("a1", "b2", "c3"))
    assert metric_keys([old]) == {old: "answer_quality/m/llm_model__g__"}
    assert metric_keys([new])[new] == metric_keys([old])[old]
    assert prompts([old, "saving"]) == {"answer_quality/m/llm_model__g__": "a1"}
    assert len(set(metric_keys([new, other]).values())) == 2


def test_keys_are_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys by their looks, addresses' passwords and tokens, and whatever a variable for keys holds; words stay."""
    monkeypatch.setenv("MY_SECRET", "a plain word")
    assert without_secrets("use sk-abcdef123 or a plain word") == "use *** or ***"
    assert without_secrets("http://me:pw@host/x?a=1&access_token=zz") == "http://***host/x?a=1&***"
    assert without_secrets("task-1234567 of disk-cache-3") == "task-1234567 of disk-cache-3"


@pytest.mark.parametrize(
    "secret",
    [
        "Authorization: Basic dXNlcjpwYXNzd29yZA==",
        "{'api-key': 'c0ffee1234567890'}",
        "x-api-key: c0ffee1234567890",
        "ghp_16C7e42F292c6912E7710c838347Ae178B4a",
        "hf_abcdefghijklmnopqrstuvwxyz",
        "AKIAIOSFODNN7EXAMPLE",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abc-def_123",
    ],
)
def test_kinds_of_secrets(secret: str) -> None:
    """Headers, tokens of services and JWTs go, wherever they stand in a text; the words around them stay."""
    told = without_secrets(f"refused: {secret} (401)")
    assert told.startswith("refused: ")
    assert told.endswith(" (401)")
    assert not any(len(part) > 9 for part in re.findall(r"[\w+/=]+", told.replace("Authorization", "")))


def test_words_that_are_no_secrets() -> None:
    """What only begins like one stays."""
    plain = "Basic authentication is needed; the api-key is missing; the hf_hub and the eye"
    assert without_secrets(plain) == plain


def test_waiting(tmp_path: Path) -> None:
    """A run waits until it is logged where it was to be; a note that cannot be read is no reason to lose it."""
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        wait(tmp_path / name, "http://far", "down")
    (tmp_path / "two" / NOTE).write_text("{")
    assert waiting(tmp_path) == {
        tmp_path / "one": Waiting("http://far", "down"),
        tmp_path / "two": Waiting("", "its note cannot be read"),
    }
    done(tmp_path / "one", "sqlite:///near")
    assert tmp_path / "one" in waiting(tmp_path)
    done(tmp_path / "one", "http://far")
    done(tmp_path / "two", "http://far")
    assert waiting(tmp_path) == {}
