"""A run reads each text once, however many strategies and questions want to know the same of it."""

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from ctxbench.harness.engine import shard
from ctxbench.harness.engine.plan import execute
from ctxbench.metrics import language, reading, tokens, values
from ctxbench.scenarios.embedded import scenario
from tests.harness.runs import plan

STRATEGIES = ("none", "window(max_tokens=8000)", "summary(every=5)", "facts", "retrieval", "layered", "tiered(tiers=3)")
MOST = 1.5  # a long text that several ask for is not remembered


class Counted:
    """A pattern that notes the texts it is put to."""

    def __init__(self, pattern: Any) -> None:
        self._pattern, self.texts = pattern, list[str]()

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def method(text: str, *more: Any) -> Any:
            self.texts.append(text)
            return getattr(self._pattern, name)(text, *more)

        return method


def test_no_text_is_read_again_and_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tokens, words, values and quotes: the texts that were read, over the different ones."""
    recording = [talk for talk in scenario("smoke") if talk.probes and talk.language == "en"][:4]
    (tmp_path / "some.jsonl").write_bytes(b"\n".join(talk.to_json() for talk in recording))
    counted = {}
    for module, name in ((language, "_PLAIN_WORD"), (values, "_PATTERN"), (reading, "_QUOTE")):
        counted[name] = Counted(getattr(module, name))
        monkeypatch.setattr(module, name, counted[name])
    tokenizer = Counted(type("Counter", (), {"count": staticmethod(tokens.text_counter("chars4"))}))
    monkeypatch.setattr(tokens, "text_counter", lambda _: tokenizer.count)
    monkeypatch.setattr(shard, "_counter", cache(tokens.TokenCounter))
    execute(plan(tmp_path / "some.jsonl", strategies=STRATEGIES, encoding="chars4"), tmp_path / "run", jobs=1)
    ratios = {
        name: round(len(count.texts) / len(set(count.texts)), 2)
        for name, count in {"tokenizer": tokenizer, **counted}.items()
    }
    assert all(ratio <= MOST for ratio in ratios.values()), ratios
