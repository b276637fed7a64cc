"""`ctxbench lab quality`: the same figures on every machine, from replies that come along; what is lacking is said."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from ctxbench.cli import app
from ctxbench.harness import quality
from ctxbench.harness.answers.store import answered
from ctxbench.harness.folder.run import load
from ctxbench.harness.models.cassette import FOLDER, Cassette, Shipped, entries, prompt_of, write_lines
from ctxbench.harness.models.local import NAME
from ctxbench.harness.quality import (
    GRADERS,
    STRATEGIES,
    conversations,
    replayed,
)
from ctxbench.reports.answers import answers_of, by_graders
from ctxbench.scenarios.errors import SetupError
from tests.harness.command import ctxbench, said
from tests.harness.models.conftest import server
from tests.harness.models.server import UNCLOSED, Server

__all__ = ["server"]
pytestmark = UNCLOSED
RECORDED = "answers.jsonl"
"""The replies that come with ctxbench for this scenario."""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, quality.Replies]:
    """The scenario as it comes, in a run folder."""
    folder = tmp_path_factory.mktemp("quality") / "run"
    return folder, replayed(folder)


def test_no_reply_that_comes_along_is_stale(made: tuple[Path, quality.Replies]) -> None:
    """Whoever changes a scenario, a strategy's words or a prompt records anew (`make record`): nothing is lacking, and
    nothing is there that is not asked for."""
    _, replies = made
    assert not replies.lacking
    assert set(Shipped([FOLDER / RECORDED])) <= replies.asked
    assert len(replies.asked) > 200


def test_every_probe_is_answered_and_graded(made: tuple[Path, quality.Replies]) -> None:
    """In English and Chinese, under each strategy and both bounds; a grade is missing only where the grader gives none
    by nature."""
    folder, _ = made
    found = {(each.answerer, each.grader.partition("(")[0]): each for each in answered(load(folder)).whole}
    assert set(found) == {(NAME, "rules"), (NAME, "logit"), ("offline", "rules")}
    answers = found[NAME, "rules"].answers
    assert len(answers) == 130 * (len(STRATEGIES) + 2)
    assert answers.answer.notna().all()
    assert answers.conversation.nunique() == conversations() == 10
    assert answers.answerable.sum() == 110 * (len(STRATEGIES) + 2)
    rules, logit = (found[NAME, grader].grades for grader in GRADERS)
    assert rules.correct.notna().all()
    assert (logit.correct.notna() == answers.answerable).all()
    assert logit.missing[~answers.answerable].str.contains("has no answer to compare with").all()


def test_the_graders_stand_side_by_side(made: tuple[Path, quality.Replies]) -> None:
    """Rules and the model; the ceiling is above the whole history by both, and each agrees with people as is known."""
    answers = answers_of(load(made[0]))
    assert answers is not None
    shown = [each for each in answers.figures if each.answerer == NAME]
    shares = [{of.strategy: of.correct for of in each.strategies} for each in shown]
    assert [of["evidence_only"] > of["none"] for of in shares] == [True, True]  # type: ignore[operator]
    _, people = by_graders(answers)
    assert {row[:2] for row in people.rows} == {
        (name, labels) for name in ("rules", "logit") for labels in ("evouna-nq", "halluqa-zh")
    }


def test_the_archive_is_asked(made: tuple[Path, quality.Replies]) -> None:
    """The model calls the tool that `archive` offers, in both languages, and no tool under any other strategy."""
    folder, _ = made
    answers = next(each.answers for each in answered(load(folder)).whole if each.answerer == NAME)
    called = answers[answers.called.str.len() > 0]
    assert {name.partition("(")[0] for name in called.strategy.astype(str)} == {"archive"}
    assert {"questions/en/stock", "questions/zh/library"} <= set(called.conversation.astype(str))


def test_the_lines_are_small_and_brief() -> None:
    """The file is about a megabyte, and holds of a request its prompt alone."""
    file = FOLDER / RECORDED
    data = file.read_bytes()
    assert len(data) < 1_200_000
    found = list(entries(data.splitlines(), RECORDED))
    assert {prompt_of(each).partition("@")[0] for each in found} == {"answer_text", "answer_text_tool", "logit"}
    assert {each.model for each in found} == {NAME}
    assert max(len(each.request) for each in found) < 50


def test_brief_lines_go_through_a_cassette(tmp_path: Path) -> None:
    """A brief line is imported and exported as it is; a request that is there has to be that of the key."""
    lines = (FOLDER / RECORDED).read_bytes().splitlines(keepends=True)[:5]
    with Cassette(tmp_path / "c") as cassette:
        assert cassette.put_many(entries(lines, "some.jsonl")) == 5
        assert list(write_lines(cassette)) == lines
        assert list(write_lines(cassette, brief=True)) == lines
        assert list(write_lines(cassette, {json.loads(lines[2])["key"]})) == lines[2:3]
        changed = lines[0].replace(b'"request":{', b'"request":{"kind":"chat",')
        with pytest.raises(SetupError, match=r"some\.jsonl:1: is no line of a cassette: the key is not that"):
            cassette.put_many(entries([changed], "some.jsonl"))


@pytest.fixture
def other(monkeypatch: pytest.MonkeyPatch) -> None:
    """A strategy sends something else than what was recorded."""
    monkeypatch.setattr(quality, "STRATEGIES", ("none", "window(max_tokens=350)"))


@pytest.mark.usefixtures("other")
def test_what_was_not_recorded_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A request that nobody recorded has no answer, which is no wrong one: it is said how many, and what to do."""
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, ["lab", "quality", "--json"])
    assert done.exit_code == 0
    asked = json.loads(done.stdout)[0]["strategies"]
    window = asked["window(max_tokens=350)"]
    assert asked["none"]["missing"] == 0
    assert 0 < window["missing"] < window["probes"] == 130
    assert window["answered"] + window["missing"] == window["probes"]
    assert window["why"][0]["why"] == f"{NAME}: not recorded: `make record`"
    line = said(done.stderr)[-1]
    assert line.startswith("missing: ")
    model = "local:qwen2.5-coder-1.5b-instruct-q4_k_m@96c4b77827a5"
    assert f"{window['missing']} of 520 replies of the answerer {model} (not recorded: `make record`)" in line


def test_a_model_of_ones_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, server: Server) -> None:
    """`--answerer` asks a server instead of the recorded replies, and grades by rules."""
    monkeypatch.setattr(quality, "STRATEGIES", ("none",))
    monkeypatch.setattr(quality, "SCENARIO", "traps")
    monkeypatch.chdir(tmp_path)
    server.text = "UNKNOWN"
    words = ["lab", "quality", "--brief", "--answerer", "openai/m", "--cassette", "c"]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    assert done.stdout.strip().startswith("Right answers of openai/m: ")
    assert "Kappa with people: rules 0.8" in done.stdout
    assert server.seen


def test_recording_needs_the_weights(tmp_path: Path) -> None:
    """Without them it is said how to get some, and nothing is written."""
    done = ctxbench("lab", "quality", "--record", "new.jsonl", cwd=tmp_path, code=2)
    assert "no weights for the model `local`" in done.stderr
    assert "make local-model" in done.stderr
    assert not list(tmp_path.iterdir())
