"""Replies that were made elsewhere: those that come with ctxbench, what is dumped, and what is taken back."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from ctxbench.harness.answers.answer import Question, RunProbes, sampled
from ctxbench.harness.answers.replies import SHIPPED, digest, prompt_of, read_replies, shipped
from ctxbench.harness.engine.plan import DEFAULT_STRATEGIES, Plan, RunInputs, execute
from ctxbench.harness.folder.run import load
from ctxbench.harness.models import OFFLINE
from ctxbench.harness.models.local import NAME
from ctxbench.scenarios.embedded import scenario
from ctxbench.scenarios.errors import SetupError
from tests.harness.command import ctxbench

RIGHT = {
    "none": 3,
    "window(max_tokens=8000)": 2,
    "retrieval": 4,
    "archive": 5,
    "tiered(working=8192, archive=131072)": 4,
}
"""Right answers, of ten questions with an answer and two without, when the replies were recorded."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a run, r, of two short conversations of `standard`."""
    folder = tmp_path_factory.mktemp("replies")
    short = [each for each in scenario("coding") if each.id in ("coding/zh-1-4", "coding/zh-3-4")]
    (folder / "c.jsonl").write_bytes(b"".join(each.to_json() + b"\n" for each in short))
    ctxbench("run", "c.jsonl", *(word for name in RIGHT for word in ("-s", name)), "-o", "r", cwd=folder)
    return folder


def questions(folder: Path, sample: int = 0) -> Iterator[Question]:
    run = load(folder)
    probes = RunProbes(run, OFFLINE, sample)
    for conversation in run.conversations():
        for strategy in probes.strategies(conversation):
            asked = probes.of(conversation, strategy).values()
            yield from (question for question in asked if isinstance(question, Question))


def test_what_is_in_the_file() -> None:
    """8,468 replies, and 611 prompts that do not fit the model's window."""
    lines = shipped().lines.values()
    too_long = [line for line in lines if not line.reply]
    assert (len(lines), len(too_long)) == (9_079, 611)
    assert {line.missing for line in too_long} == {"was not asked: the prompt does not fit its window of 32,704 tokens"}
    assert all(line.tokens for line in lines)


@pytest.mark.slow
def test_most_prompts_of_standard_have_a_reply(tmp_path: Path) -> None:
    """Of all default strategies and `evidence_only`. Strategies that have changed since have fewer."""
    execute(Plan(RunInputs(("standard",)), DEFAULT_STRATEGIES, answers=False), tmp_path / "run")
    known = [digest(prompt_of(question)) in shipped().lines for question in questions(tmp_path / "run")]
    assert sum(known) > 0.5 * len(known)


def test_the_replies_that_come_along(folder: Path) -> None:
    """They give the recorded answers, graded as they were when they were recorded, without the weights."""
    asked = ("--replies", str(SHIPPED), "-a", NAME, "--json")
    found = json.loads(ctxbench("lab", "answer", "r", *asked, cwd=folder).stdout)
    right = {
        name: round(10 * figures["correct"] + 2 * figures["abstained"])
        for name, figures in found["strategies"].items()
        if name in RIGHT and not figures["missing"]
    }
    assert right == RIGHT


def test_dumped_and_taken_back(folder: Path) -> None:
    """Every distinct prompt is a line, of a sample of the questions fewer; a reply to one is the answer of all
    strategies that send it; prompts without a reply are missing, are said to be, and with --strict an error."""
    ctxbench("lab", "answer", "r", "--dump", "all.jsonl", cwd=folder)
    ctxbench("lab", "answer", "r", "--dump", "some.jsonl", "--sample", "4", cwd=folder)
    every, some = (
        {line["digest"]: line for line in map(json.loads, (folder / name).read_text().splitlines())}
        for name in ("all.jsonl", "some.jsonl")
    )
    asked = [*questions(folder / "r")]
    assert set(every) == {digest(prompt_of(question)) for question in asked}
    assert len(every) < len(asked)
    assert set(some) == {digest(prompt_of(question)) for question in questions(folder / "r", 4)} < set(every)
    assert all(digest(line["text"]) == name and line["tokens"] > 100 for name, line in every.items())
    taken = ("lab", "answer", "r", "-a", "openai/m", "--strict", "--json", "--replies")
    lines = [json.dumps({"digest": name, "reply": "" if name == min(some) else "UNKNOWN"}) for name in some]
    (folder / "replies.jsonl").write_text("\n".join(lines))
    done = ctxbench(*taken, "replies.jsonl", cwd=folder, code=2)
    found = json.loads(done.stdout)
    for figures in found["strategies"].values():
        assert figures["answered"] >= 3
        assert {why["why"] for why in figures["why"]} <= {
            "replies.jsonl has no reply to its prompt",
            "the reply is empty",
        }
    [tally] = found["replies"]
    assert tally["missing"] == tally["asked"] - tally["usable"] > tally["failed"] > 0
    assert f"missing: {tally['missing']} of {tally['asked']} replies of the answerer openai/m" in done.stderr
    assert "is a prompt, which a model has to answer first" in ctxbench(*taken, "all.jsonl", cwd=folder, code=2).stderr
    (folder / "other.jsonl").write_text(lines[0].replace('"digest": "', '"digest": "x'))
    assert "no reply of it answers a prompt of r" in ctxbench(*taken, "other.jsonl", cwd=folder, code=2).stderr


def test_a_sample_has_every_kind(folder: Path) -> None:
    """The same questions in every run, as many of each kind as there are of it, and no more than there are."""
    run = load(folder / "r")
    some = sampled(run, 4)
    assert len(some) == 4
    assert some == sampled(run, 4)
    assert len(sampled(run, 1_000)) == len(run.arrow("probes").to_pandas().drop_duplicates(["conversation", "number"]))


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("", "has no reply"),
        ('{"digest": 3}', ":1: is no reply"),
        ('{"digest": "a"}', '"reply"'),
        (None, "No such file"),
    ],
)
def test_what_is_no_file_of_replies(tmp_path: Path, text: str | None, what: str) -> None:
    if text is not None:
        (tmp_path / "f").write_text(text)
    with pytest.raises(SetupError, match=what):
        read_replies(tmp_path / "f", "openai/m")


def test_replies_of_nobody(folder: Path) -> None:
    """A file of replies does not say which model made them."""
    done = ctxbench("lab", "answer", "r", "--replies", "all.jsonl", cwd=folder, code=2)
    assert "whose replies are these? Name the model with --answerer" in done.stderr
