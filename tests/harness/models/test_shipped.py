"""Replies that come with ctxbench: looked at first, copied, told when they are stale."""

from __future__ import annotations

from pathlib import Path

import pytest

from ctxbench.harness.answers.chat import PROMPTS
from ctxbench.harness.graders.llm import PROMPT, rubrics
from ctxbench.harness.models import Models, Settings
from ctxbench.harness.models.cassette import (
    Cassette,
    CassetteEntry,
    Shipped,
    entries,
    key_of,
    opened,
    shipped,
    write_lines,
)
from ctxbench.harness.models.recorded import Choice, Likely, Recorded
from ctxbench.scenarios.errors import SetupError
from ctxbench.strategies.base import ModelError

CHOICE = Choice("local:m@1", "examples\n", "text:", (" Yes", " No"), "logit@aaaaaaaaaaaa")
ANSWER = b'{"logprobs":{" Yes":-0.25},"floor":-9.0,"input_tokens":7}'


def entry(choice: Choice = CHOICE, reply: bytes = ANSWER) -> CassetteEntry:
    return CassetteEntry(key_of(choice.canonical()), "choice", choice.model, reply, choice.canonical())


@pytest.fixture
def coming(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shipped:
    """What comes with this ctxbench is one choice."""
    with Cassette(tmp_path / "made") as cassette:
        cassette.put(entry())
        (tmp_path / "one.jsonl").write_bytes(b"".join(write_lines(cassette)))
    found = Shipped([tmp_path / "one.jsonl"])
    monkeypatch.setattr("ctxbench.harness.models.cassette.shipped", lambda: found)
    return found


def test_they_are_looked_at_first_and_copied(tmp_path: Path, coming: Shipped) -> None:
    """In auto a reply that comes along is used, even beside another in the file; what is used is in the file then."""
    with opened(tmp_path / "c") as cassette:
        assert cassette.get(entry().key) == ANSWER
        assert cassette.get("nothing") is None
    with Cassette(tmp_path / "c", read_only=True) as cassette:
        assert list(cassette.entries()) == [entry()]
    with Cassette(tmp_path / "d") as cassette:
        cassette.put(entry(reply=b"another"))
    with opened(tmp_path / "d") as cassette:
        assert cassette.get(entry().key) == ANSWER


def test_replay_needs_no_file_of_the_user(tmp_path: Path, coming: Shipped) -> None:
    """With no key, no weights and no cassette what comes along is replayed; a file that was named has to be there."""
    models = Models(Settings(replay=True))
    assert models.choose(CHOICE) == Likely({" Yes": -0.25}, -9.0, 7)
    assert not models.settings.path().exists()
    with pytest.raises(SetupError, match="there is no such cassette"):
        Settings(summariser="local:m@1", replay=True, cassette=str(tmp_path / "nowhere")).checked()
    with pytest.raises(ModelError, match=r"local:m@1: nowhere has no reply|there is no such cassette"):
        Models(Settings(replay=True, cassette=str(tmp_path / "nowhere"))).choose(CHOICE)


def test_a_stale_one_is_named(tmp_path: Path, coming: Shipped) -> None:
    """A request of a prompt that has changed is told that there were replies to the older one."""
    newer = Choice(CHOICE.model, CHOICE.prefix, "other text:", CHOICE.tokens, "logit@bbbbbbbbbbbb")
    with pytest.raises(ModelError, match=r"come with ctxbench are stale, to logit@aaaaaaaaaaaa: `make record` renews"):
        Models(Settings(replay=True)).choose(newer)
    with pytest.raises(ModelError, match="has no reply to this request: record it once"):
        Models(Settings(replay=True)).choose(Choice(CHOICE.model, "", "x", CHOICE.tokens, CHOICE.prompt))


def test_none_that_comes_with_ctxbench_is_stale() -> None:
    """Whoever changes a prompt records its replies anew: `make record`."""
    current = {*PROMPTS, *rubrics("strict"), *rubrics("lenient"), PROMPT}
    assert set(shipped().prompts) <= current


def test_choices_go_through_lines(tmp_path: Path) -> None:
    """A choice that was exported and imported is replayed; a token that is not among the likeliest is at the floor."""
    with Cassette(tmp_path / "a") as one, Cassette(tmp_path / "b") as two:
        one.put(entry())
        assert two.put_many(entries(list(write_lines(one)), "a.jsonl")) == 1
        found = Recorded("local:m@1", None, two, None).choose(CHOICE)
    assert (found.of(" Yes"), found.of(" No")) == (-0.25, -9.0)
