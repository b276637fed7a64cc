"""The replies of a real model to the questions of `standard`, which come with ctxbench."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from ctxbench.harness.answers.answer import Question, RunProbes
from ctxbench.harness.answers.chat import TEXT_PROMPT, TextForm
from ctxbench.harness.engine.plan import DEFAULT_STRATEGIES, Plan, RunInputs, execute
from ctxbench.harness.folder.run import load
from ctxbench.harness.folder.store import read_conversations
from ctxbench.harness.models import Models, Settings
from ctxbench.harness.models.cassette import FOLDER, Shipped, key_of, prompt_of
from ctxbench.harness.models.local import NAME
from ctxbench.harness.models.recorded import ModelAnswer
from ctxbench.scenarios.embedded import scenario
from tests.harness.command import ctxbench

FILE, TOKENS = "standard.jsonl.zst", 64
RIGHT = {
    "none": 3,
    "window(max_tokens=8000)": 2,
    "retrieval": 4,
    "archive": 5,
    "tiered(working=8192, archive=131072)": 4,
}
"""Right answers, of ten questions with an answer and two without, when the replies were recorded."""


def keys(folder: Path) -> Iterator[str]:
    """The keys of what the model is asked about each question of a run, without any tool."""
    run = load(folder)
    probes = RunProbes(run, Models(Settings()))
    for path in sorted((folder / "recordings").glob("*.jsonl.zst")):
        for conversation in read_conversations(path):
            for _, asked in probes.of(conversation):
                for question in asked.values():
                    assert isinstance(question, Question)
                    form = TextForm(question)
                    yield key_of(form.last(form.request(NAME, TOKENS)).canonical())


def test_what_is_in_the_file() -> None:
    """8,468 replies, and 611 prompts that do not fit the model's window."""
    entries = [*Shipped([FOLDER / FILE]).values()]
    assert {(entry.kind, entry.model, prompt_of(entry)) for entry in entries} == {("chat", NAME, TEXT_PROMPT)}
    answers = [msgspec.json.decode(entry.reply, type=ModelAnswer) for entry in entries]
    too_long = [answer for answer in answers if answer.finish == "context_length"]
    assert (len(answers), len(too_long)) == (9_079, 611)
    assert all(answer.usage is not None and answer.usage.output <= TOKENS for answer in answers)
    assert not any(answer.text for answer in too_long)


@pytest.mark.slow
def test_every_prompt_of_standard_has_its_reply(tmp_path: Path) -> None:
    """Of all default strategies and `evidence_only`: the file has exactly what is asked."""
    execute(Plan(RunInputs(("standard",)), DEFAULT_STRATEGIES, answers=False), tmp_path / "run")
    assert set(keys(tmp_path / "run")) == set(Shipped([FOLDER / FILE]))


def test_the_replies_are_replayed_without_the_weights(tmp_path: Path) -> None:
    """`lab answer` with the model `local` gives the recorded answers, graded as they were when they were recorded."""
    short = [each for each in scenario("coding") if each.id in ("coding/zh-1-4", "coding/zh-3-4")]
    (tmp_path / "c.jsonl").write_bytes(b"".join(each.to_json() + b"\n" for each in short))
    named = [word for name in RIGHT for word in ("-s", name)]
    ctxbench("run", "c.jsonl", *named, "-o", "r", cwd=tmp_path)
    asked = ("-a", f"local(rounds=0, answer_tokens={TOKENS})", "--replay", "--strict", "--json")
    found = json.loads(ctxbench("lab", "answer", "r", *asked, cwd=tmp_path).stdout)
    right = {
        name: round(10 * figures["correct"] + 2 * figures["abstained"])
        for name, figures in found["strategies"].items()
        if name in RIGHT and not figures["missing"]
    }
    assert right == RIGHT
