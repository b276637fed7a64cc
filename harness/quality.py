"""The scenario `questions`, answered and graded by a small local model whose replies come with ctxbench.

The strategies are fixed, as the contexts they send must be the recorded ones. It is replayed from nothing but the
replies that come with ctxbench, so every machine shows the same figures; or recorded anew, where the weights are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from ctxbench.metrics.tokens import TokenCounter
from ctxbench.scenarios.embedded import scenario
from ctxbench.scenarios.errors import SetupError

from .answers.answer import RunProbes, answer
from .answers.chat import ByModel
from .engine.plan import Plan, RunInputs, execute
from .folder.files import placed
from .folder.run import Run, load
from .graders.registry import grader
from .models import Models, Settings
from .models.cassette import Cassette, shipped, write_lines
from .models.local import NAME, local_name

SCENARIO = "questions"
STRATEGIES = (
    "none",
    "window(max_tokens=400)",
    "summary(threshold=6, every=4, max_summary_tokens=150)",
    "session_summary(token_threshold=300, max_summary_tokens=150)",
    "smart(window=300, system=60, last_messages=4, first_turns=1, max_summary_tokens=80)",
    "retrieval(recent=1, limit=4)",
    "layered(recent=1, limit=4)",
    "facts | window(max_tokens=400)",
    "archive(threshold=100)",
    "archive(threshold=100) | window(max_tokens=800)",
    "focus(limit=400, system=80, functions=120)",
    "tiered(limit=500, recall=120, k=4)",
)
"""Every kind, with sizes that conversations of 700 to 2,100 tokens exceed."""
GRADERS = ("rules", "logit")

Done = Callable[[int], None]
"""Told how many conversations are answered."""


class Replies(NamedTuple):
    """Replies of the model that were requested, and those of them that are not recorded."""

    asked: frozenset[str]
    lacking: frozenset[str]


class Watched(Cassette):
    """A cassette that records which requests were made of it, for one command."""

    def __init__(self, path: Path, *, read_only: bool) -> None:
        super().__init__(path, read_only=read_only, shipped=shipped)
        self._requested: set[str] = set()
        self._recorded: set[str] = set()

    def get_many(self, keys: Sequence[str]) -> dict[str, bytes]:
        """Return the replies as any cassette does."""
        replies = super().get_many(keys)
        self._requested.update(keys)
        self._recorded.update(replies)
        return replies

    def lacks(self, model: str, prompt: str = "") -> str:
        """Explain that ctxbench comes with no reply to this request."""
        older = self.shipped().older(prompt)
        return f"{model}: not recorded{older and f', only to {older}, which has changed since'}: `make record`"

    def replies(self) -> Replies:
        """Return the requests until now."""
        return Replies(frozenset(self._requested), frozenset(self._requested - self._recorded))


def conversations() -> int:
    """Return the number of conversations."""
    return sum(1 for _ in scenario(SCENARIO))


def replayed(folder: Path, done: Done = lambda _: None) -> Replies:
    """Answer and grade the scenario in a run folder, from the replies that come with ctxbench."""
    with TemporaryDirectory() as beside:
        nothing = Path(beside) / "cassette"
        Cassette(nothing).close()
        with Watched(nothing, read_only=True) as cassette:
            return _answered(folder, cassette, True, done)


def record(to: Path, folder: Path, done: Done = lambda _: None) -> Replies:
    """Answer and grade it with the model, where no reply is recorded yet. Writes exactly the replies that were needed.

    Recordings are kept beside the run folder until all are there: a recording that was stopped goes on. Raises
    SetupError if the weights are not those of `make local-model`.
    """
    name, _ = local_name("")
    if name != NAME:
        raise SetupError(f"the weights of `local` are {name}, not {NAME}: get those with `make local-model`")
    unfinished = folder.with_name(f"{folder.name}.recording")
    with Watched(unfinished, read_only=False) as cassette:
        replies = _answered(folder, cassette, False, done)
        with placed(to) as draft:
            draft.write_bytes(b"".join(write_lines(cassette, replies.asked, brief=True)))
    for path in unfinished.parent.glob(f"{unfinished.name}*"):
        path.unlink()
    return replies


def contexts(folder: Path) -> Run:
    """Replay the scenario through the strategies in a run folder, and return the run."""
    execute(Plan(RunInputs((SCENARIO,)), STRATEGIES), folder, overwrite=True)
    return load(folder)


def _answered(folder: Path, cassette: Watched, replay: bool, done: Done) -> Replies:
    run = contexts(folder)
    models = Models(Settings(cassette=str(cassette.path), replay=replay, answerer=NAME))
    models.cassette = cassette
    probes, by = RunProbes(run, models), ByModel(models, TokenCounter(run.manifest.plan.encoding))
    for name in GRADERS:
        answer(run, by, grader(name, models=models), probes, done=done if name == GRADERS[0] else lambda _: None)
    return cassette.replies()
