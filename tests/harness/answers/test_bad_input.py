"""Probes that recordings get wrong, and answers that no one would give: one bad thing costs itself and nothing else."""

import json
from pathlib import Path
from typing import Any

import pytest

from ctxbench.harness.answers.store import Answered, answered
from ctxbench.harness.engine.plan import Plan, RunInputs, execute
from ctxbench.harness.folder.run import Run, load

PORT = {"id": "q", "question": "What is the staging port?", "evidence": ["m0"]}
ASKED: dict[str, dict[str, Any]] = {
    "without gold": PORT,
    "gold is a number": PORT | {"answers": 9680},
    "gold is a list of numbers": PORT | {"answers": [9680]},
    "gold is a text": PORT | {"answers": "9680"},
    "gold is null": PORT | {"answers": None},
    "gold is empty": PORT | {"answers": []},
    "gold is blank": PORT | {"answers": ["", " "]},
    "several are accepted": PORT | {"answers": ["nine thousand", "9680"]},
    "evidence that is nowhere": PORT | {"answers": ["9680"], "evidence": ["nowhere", "m0"]},
    "another language": PORT | {"answers": ["9680"], "question": "预发布端口是多少？"},
    "no question": {"id": "q", "answers": ["9680"]},
    "an empty question": PORT | {"answers": ["9680"], "question": ""},
    "as it should be": PORT | {"answers": ["9680"]},
}
LEFT_OUT = {"gold is a number", "gold is a list of numbers", "gold is a text", "gold is null", "no question"}
NOT_GRADED = {"without gold", "gold is empty", "gold is blank"}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A file a probe, each the only one of its conversation."""
    folder = tmp_path_factory.mktemp("bad")
    (folder / "in").mkdir()
    texts = ("The staging port is 9680.", "Noted.", "The colour is blue.", "I see.")
    for name, probe in ASKED.items():
        said = [{"id": f"m{at}", "role": ("user", "assistant")[at % 2], "text": text} for at, text in enumerate(texts)]
        row = {"ctxbench": "1", "id": name, "messages": said, "probes": [probe]}
        (folder / "in" / f"{name}.jsonl").write_text(json.dumps(row, ensure_ascii=False) + "\n", encoding="utf-8")
    execute(Plan(RunInputs((str(folder / "in"),)), ("none",)), folder / "run")
    return load(folder / "run")


@pytest.fixture(scope="module")
def found(run: Run) -> Answered:
    [made] = answered(run).whole
    return made


def test_what_is_wrong_is_named_and_the_rest_is_asked(run: Run, found: Answered) -> None:
    """Five have no probe that can be read: each is named with its file, field and remedy."""
    problems = {Path(problem.file).stem: problem for problem in run.manifest.problems}
    assert LEFT_OUT | {"evidence that is nowhere"} == problems.keys()
    assert all(problem.line == 1 and problem.field.startswith("probes[0]") for problem in problems.values())
    assert all(problem.remedy for problem in problems.values())
    assert set(found.answers.conversation.astype(str)) == set(ASKED) - LEFT_OUT


@pytest.mark.parametrize("name", sorted(set(ASKED) - LEFT_OUT))
def test_each_has_its_grade_or_none(found: Answered, name: str) -> None:
    """Without gold: answered, not graded. Several accepted: any is enough. Another language: an answer all the same."""
    rows = found.rows
    [row] = rows[(rows.conversation == name) & (rows.strategy == "none")].itertuples()
    assert row.answer is not None
    if name in NOT_GRADED:
        assert row.correct is None
        assert row.not_graded == "the recording has no answer to compare with"
    elif name in ("another language", "an empty question"):
        assert row.correct in (True, False)
    else:
        assert (row.answer, row.correct) == ("9680", True)
