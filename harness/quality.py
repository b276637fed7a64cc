"""The scenario `quality`, answered and graded by a small local model whose replies come with ctxbench.

Which strategies are asked is fixed, as what they send has to be what was recorded. It is replayed from nothing but the
replies that come with ctxbench, so every machine shows the same figures; or recorded anew, where the weights are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal, NamedTuple

from ..metrics.tokens import TokenCounter
from ..scenarios.embedded import scenario
from ..scenarios.errors import SetupError
from .answers.answer import answer
from .answers.chat import ByModel
from .answers.questions import RunProbes
from .engine.plan import Plan, RunInputs, execute
from .folder.run import load
from .folder.store import placed
from .graders.registry import grader
from .models import Models, Settings
from .models.cassette import Cassette, come_along, shipped, write_lines
from .models.local import NAME, local_name

SCENARIO = "quality"
STRATEGIES = (
    "none",
    "window(max_tokens=1500)",
    "summary(threshold=6, every=4, max_summary_tokens=200)",
    "retrieval(recent=1, limit=5)",
)
"""With sizes that the support cases exceed."""
GRADERS = ("rules", "logit")
RECORDED = "answers.jsonl"
"""The file of their replies, beside the others that come with ctxbench."""

Done = Callable[[int], None]
"""Told how many conversations are answered."""


class Replies(NamedTuple):
    """How many replies of the model were needed, and how many of them there were none of."""

    asked: frozenset[str]
    lacking: frozenset[str]

    @property
    def are_whole(self) -> bool:
        """Whether every reply was there."""
        return not self.lacking

    def in_words(self) -> str:
        """One line for the user."""
        what = f"{len(self.lacking):,} of {len(self.asked):,} replies of {NAME}"
        return f"{what} are stale or were never recorded, and the answers without them missing: run `make record`"


class Watched(Cassette):
    """A cassette that knows what was asked of it. It is made for one command."""

    def __init__(self, path: Path, *, read_only: bool) -> None:
        super().__init__(path, read_only=read_only, shipped=shipped())
        self._asked: set[str] = set()
        self._found: set[str] = set()

    def get_many(self, keys: Sequence[str]) -> dict[str, bytes]:
        """As any cassette does."""
        found = super().get_many(keys)
        self._asked.update(keys)
        self._found.update(found)
        return found

    def lacks(self, model: str, prompt: str = "") -> str:
        """Why there is no reply: none that comes along is to this request."""
        older = shipped().older(prompt)
        return f"{model}: not recorded{older and f', only to {older}, which has changed since'}: `make record`"

    def replies(self) -> Replies:
        """What was asked until now."""
        return Replies(frozenset(self._asked), frozenset(self._asked - self._found))


def conversations() -> int:
    """How many there are."""
    return sum(1 for _ in scenario(SCENARIO))


def replayed(folder: Path, done: Done = lambda _: None) -> Replies:
    """Have the scenario answered and graded in a run folder, from the replies that come with ctxbench."""
    with TemporaryDirectory() as beside:
        nothing = Path(beside) / "cassette"
        Cassette(nothing).close()
        with Watched(nothing, read_only=True) as cassette:
            return _answered(folder, cassette, "replay", done)


def record(to: Path, folder: Path, done: Done = lambda _: None) -> Replies:
    """The same with the model, for what has no reply yet. Writes exactly the replies that were needed.

    What is recorded is kept beside the run folder until all is: a recording that was stopped goes on. Raises SetupError
    if the weights are not those of `make local-model`.
    """
    name, _ = local_name("")
    if name != NAME:
        raise SetupError(f"the weights of `local` are {name}, not {NAME}: get those with `make local-model`")
    kept = folder.with_name(f"{folder.name}.recording")
    with Watched(kept, read_only=False) as cassette:
        replies = _answered(folder, cassette, "auto", done)
        with placed(to) as draft:
            draft.write_bytes(b"".join(write_lines(cassette, replies.asked, brief=True)))
    for path in kept.parent.glob(f"{kept.name}*"):
        path.unlink()
    return replies


def unused(replies: Replies) -> frozenset[str]:
    """The keys of the replies that come along for this scenario, and that nobody asks for any more."""
    return frozenset(entry.key for entry in come_along(RECORDED)) - replies.asked


def _answered(folder: Path, cassette: Watched, mode: Literal["auto", "replay"], done: Done) -> Replies:
    plan = Plan(RunInputs((SCENARIO,)), STRATEGIES)
    execute(plan, folder, overwrite=True)
    run = load(folder)
    models = Models(Settings(cassette=str(cassette.path), mode=mode, answerer=NAME, grader=NAME))
    models.cassette = cassette
    probes, by = RunProbes(run, models), ByModel(models, TokenCounter(plan.encoding))
    answer(run, by, grader(GRADERS[0], models=models), probes, done=done)
    for name in GRADERS[1:]:
        answer(run, by, grader(name, models=models), probes)
    return cassette.replies()
