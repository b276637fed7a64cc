"""Items of our own to grade, a model that answers from a script, and nothing of the user's environment."""

import json
from pathlib import Path

import msgspec
import pytest

from ctxbench.metrics.grading import GradedItem

HARD = Path(__file__).with_name("hard_pairs.jsonl")


class Pair(msgspec.Struct, frozen=True):
    """A question with a right answer and one that nearly is."""

    about: str
    lang: str
    question: str
    gold: str
    right: str
    wrong: str

    def items(self) -> tuple[GradedItem, GradedItem]:
        """The right answer and the wrong one."""
        name = f"{self.lang} {self.question}"
        return (
            GradedItem(f"{name} right", self.question, (self.gold,), self.right),
            GradedItem(f"{name} wrong", self.question, (self.gold,), self.wrong),
        )


@pytest.fixture(scope="session")
def hard_pairs() -> list[Pair]:
    """Near misses of dates, numbers, names, places, order and negation, in English and Chinese."""
    return [msgspec.convert(json.loads(line), Pair) for line in HARD.read_text().splitlines()]


@pytest.fixture(autouse=True)
def _no_user(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_API_BASE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
