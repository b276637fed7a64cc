"""The grader `ragas`. What needs ragas is skipped where the extra is not installed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from ctxbench.harness.graders.registry import grader
from ctxbench.harness.models import ModelAccess, Settings
from ctxbench.harness.models.recorded import ModelRequest
from ctxbench.metrics.grading import Grade, GradedItem
from ctxbench.metrics.value import Missing
from ctxbench.scenarios.errors import MissingExtra
from ctxbench.strategies.base import ModelError
from tests.harness.graders.scripted import MODEL, Talker, talking
from tests.harness.models.llama import llama_server, needs_llama

ITEM = GradedItem(
    "1",
    "When does the lease end?",
    ("31 March 2027",),
    "The lease ends on 31 March 2027.",
    evidence=("The lease of the warehouse ends on 31 March 2027.",),
)
needs_ragas = pytest.mark.skipif(find_spec("ragas") is None, reason="the extra `ragas` is not installed")


@pytest.mark.skipif(find_spec("ragas") is not None, reason="ragas is installed")
def test_without_the_extra() -> None:
    """Without ragas its extra is named, before anything is graded."""
    with pytest.raises(MissingExtra, match=r"ragas is not installed: pip install 'ctxbench\[ragas\]'"):
        grader("ragas(metric='faithfulness', model='openai/gpt-4o-mini')")


def judge(request: ModelRequest) -> str:
    """A model that finds one statement in any text, and takes those about 2027 for true."""
    assert request.schema is not None
    asked = str(request.asked).rsplit("{", 1)[-1]
    verdict = int("2027" in asked)
    statement = {"statement": "The lease ends.", "reason": "r", "verdict": verdict}
    full = {
        "statements": [statement if "$defs" in request.schema else "The lease ends on 31 March 2027."],
        "claims": ["The lease ends on 31 March 2027."],
        "classifications": [{"statement": "s", "reason": "r", "attributed": verdict}],
        "question": "When does the lease end?",
        "noncommittal": 0,
        "rating": 4,
    }
    return json.dumps({name: full[name] for name in request.schema["properties"]})


@needs_ragas
@pytest.mark.parametrize(
    ("metric", "calls"),
    [
        ("faithfulness", 2),
        ("factual_correctness", 4),
        ("context_recall", 1),
        ("answer_relevancy", 1),
        ("answer_accuracy", 2),
    ],
)
def test_metrics_that_ask_a_model(tmp_path: Path, metric: str, calls: int) -> None:
    """Each asks through the cassette, at temperature 0 and with its schema; asked again it is replayed."""
    talker = Talker(judge)
    models = talking(tmp_path / "c", talker)
    made = grader(f"ragas(metric={metric!r}, model={MODEL!r})", models=models)
    (found,) = made.grade([ITEM])
    assert isinstance(found, Grade)
    assert found.correct
    assert found.score == pytest.approx(1.0, abs=0.01)
    assert made.used.calls == calls  # type: ignore[attr-defined]
    assert len(talker.asked) <= calls
    assert all(request.temperature == 0 and request.schema for request in talker.asked)
    asked = len(talker.asked)
    assert grader(made.name, models=models).grade([ITEM]) == [found]
    assert len(talker.asked) == asked


@needs_ragas
@needs_llama
@pytest.mark.slow
@pytest.mark.parametrize("metric", ["faithfulness", "factual_correctness", "context_recall", "answer_relevancy"])
def test_metrics_against_a_real_server(tmp_path: Path, metric: str, llama: str) -> None:
    """A model of 1.5 billion parameters behind llama.cpp: each metric comes to a score in its range."""
    settings = Settings(cassette=str(tmp_path / "c"), usual=ModelAccess(llama, timeout=600))
    (found,) = grader(f"ragas(metric={metric!r}, model='openai/local')", settings).grade([ITEM])
    assert isinstance(found, Grade), found
    assert 0 <= found.score <= 1


@pytest.fixture(scope="module")
def llama() -> Iterator[str]:
    with llama_server() as address:
        yield address


@needs_ragas
@pytest.mark.parametrize("says", ["prose", "{}", "", ModelError("timed out"), '{"statements": [], "claims": []}'])
@pytest.mark.parametrize("metric", ["faithfulness", "answer_accuracy", "factual_correctness"])
def test_what_ragas_would_score_is_missing(tmp_path: Path, says: str | ModelError, metric: str) -> None:
    """A failed call, a reply of another form, no statements at all: missing. ragas has some of these as 0."""
    made = grader(
        f"ragas(metric={metric!r}, model={MODEL!r})", models=talking(tmp_path / "c", Talker(lambda request: says))
    )
    (found,) = made.grade([ITEM])
    assert isinstance(found, Missing)
    assert found.detail


@needs_ragas
def test_metrics_without_a_model(tmp_path: Path) -> None:
    """They ask nothing; of several accepted answers the best counts; what an item has not is missing."""
    models = talking(tmp_path / "c", Talker(lambda request: ""))
    made = grader("ragas(metric='exact_match')", models=models)
    items = [
        GradedItem("1", "Who?", ("Bob", "Ann"), "Ann"),
        GradedItem("2", "Who?", ("Bob",), "Ann"),
        GradedItem("3", "Who?", (), "Ann"),
    ]
    right, wrong, none = made.grade(items)
    assert [right, wrong] == [Grade(True, 1.0, "exact_match 1.000"), Grade(False, 0.0, "exact_match 0.000")]
    assert isinstance(none, Missing)
    (no_evidence,) = grader(f"ragas(metric='faithfulness', model={MODEL!r})", models=models).grade(items[:1])
    assert no_evidence == Missing("undefined", "faithfulness needs a retrieved_contexts, and the item has none")
    for metric in ("bleu_score", "chrf_score", "rouge_score", "string_presence", "string_similarity"):
        (found,) = grader(f"ragas(metric={metric!r})", models=models).grade([ITEM])
        assert isinstance(found, Grade)


@needs_ragas
def test_nothing_is_written_home(tmp_path: Path) -> None:
    """ragas makes no user id in the home."""
    code = "from ctxbench.harness.graders.registry import grader; print(grader(\"ragas(metric='exact_match')\").name)"
    home = {**os.environ, "HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path / "data"), "MPLCONFIGDIR": "/tmp"}
    done = subprocess.run([sys.executable, "-c", code], env=home, capture_output=True, text=True, cwd=tmp_path)
    assert done.stdout.startswith("ragas(metric='exact_match'"), done.stderr
    assert not [path for path in tmp_path.rglob("*") if "ragas" in path.name]
