"""Models that answer from a function, without a provider: behind a cassette and a purse like all others."""

from collections.abc import Callable
from pathlib import Path
from threading import Lock

from ctxbench.harness.models import ModelAccess, Models, Settings
from ctxbench.harness.models.cassette import Charge
from ctxbench.harness.models.recorded import Choice, Likely, ModelAnswer, ModelRequest, Recorded
from ctxbench.metrics.prices import TokenUsage
from ctxbench.strategies.base import ModelError

MODEL = "openai/gpt-4o-mini"


class Talker:
    """A chat model: a text for a request, or a ModelError to raise. It remembers what it was asked."""

    def __init__(self, says: Callable[[ModelRequest], str | ModelError]) -> None:
        self.says, self.asked, self.lock = says, list[ModelRequest](), Lock()

    def chat(self, request: ModelRequest, charge: Charge) -> ModelAnswer:
        with self.lock:
            self.asked.append(request)
        said = self.says(request)
        if isinstance(said, ModelError):
            raise said
        return ModelAnswer(said, TokenUsage(100, 10), "stop")


class Chooser:
    """A model that says how likely tokens are."""

    def __init__(self, says: Callable[[Choice], dict[str, float]]) -> None:
        self.says, self.asked = says, list[Choice]()

    def choose(self, choice: Choice) -> Likely:
        self.asked.append(choice)
        return Likely(self.says(choice), -20.0, 50)


def talking(path: Path, model: Talker) -> Models:
    """Models of which the grader is that one."""
    models = Models(Settings(cassette=str(path), usual=ModelAccess(parallel=3), command="test"))
    models._chats[MODEL] = Recorded(MODEL, model, models.cassette, models.purse)
    return models


def choosing(path: Path, model: Chooser) -> Models:
    """Models of which `local:m` is that one."""
    models = Models(Settings(cassette=str(path)))
    models._chats["local:m"] = Recorded("local:m", model, models.cassette, None)
    return models
