"""A model in this process: a GGUF file through llama.cpp (extra `local`: xllamacpp, one wheel with no dependencies).

One thread by default: llama.cpp's threads wait by spinning; two on two busy cores were 5 to 10 times slower than one.
The seed is fixed and a text is read in pieces that depend on it alone (`piecewise.py`): the same request has the same
answer whatever was asked before it. A model is known by its content, not by its path: `local:NAME@FINGERPRINT` is its
name in results and in the cassette.
"""

from __future__ import annotations

import hashlib
import os
from importlib.util import find_spec
from pathlib import Path
from threading import Lock
from typing import Any

from ...metrics.prices import Usage
from ...scenarios.errors import MissingExtra, SetupError
from ...strategies.base import ModelError
from .chat import said
from .choices import Choice, Likely
from .piecewise import shared, starts
from .recorded import Answer, Request
from .weights import NAME, weights

_BLOCKS, _BLOCK = 16, 1 << 16
_LIKELIEST = 50
"""Tokens whose probability is asked for."""


def local_name(gguf: str) -> tuple[str, str]:
    """The name of the model in a GGUF file, and the file; an empty path is that of `make local-model`.

    Raises SetupError if there is no such file or it is no GGUF, MissingExtra if there is nothing to run it with.
    """
    path = Path(gguf) if gguf else weights()
    if not gguf and not path.is_file():
        raise SetupError("no weights for the model `local`: give --gguf PATH, or get some with `make local-model`")
    try:
        name = f"local:{path.stem}@{_fingerprint(path)}"
    except OSError as error:
        raise SetupError(f"{path}: cannot be read: {error.strerror or error}: name a GGUF file with --gguf") from None
    if find_spec("xllamacpp") is None:
        raise MissingExtra("xllamacpp", "local")
    return name, str(path)


def recorded_name(gguf: str) -> str:
    """The name of the model in a GGUF file that is only replayed: that of `make local-model` need not be there."""
    return local_name(gguf)[0] if gguf or weights().is_file() else NAME


def _fingerprint(path: Path) -> str:
    """Of the file's size and 16 blocks spread over it: other weights differ in all of them."""
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        if file.read(4) != b"GGUF":
            raise SetupError(f"{path}: is no GGUF file: name another with --gguf")
        digest = hashlib.sha256(str(size).encode())
        for block in range(_BLOCKS):
            file.seek((size - _BLOCK) * block // (_BLOCKS - 1) if size > _BLOCK else 0)
            digest.update(file.read(_BLOCK))
    return digest.hexdigest()[:12]


class Local:
    """A model that is loaded when it is first asked. It takes the memory of its file and its context.

    `window`: tokens of prompt and reply together; a prompt that leaves no room raises ModelError. There is no time-out:
    reading a long prompt takes minutes on one thread.
    """

    def __init__(self, gguf: str, threads: int = 1, window: int = 16_384) -> None:
        self._gguf, self._threads, self._window = gguf, threads, window
        self._server: Any = None
        self._lock, self._prefix = Lock(), ""
        self._starts: list[str] = []
        """The pieces of a chat that have been read, and what is made of them is there."""

    def chat(self, request: Request) -> Answer:
        """The model's answer. Raises ModelError."""
        asked = {
            "messages": said(request.asked),
            "temperature": request.temperature,
            "max_tokens": request.max_tokens,
            "seed": request.vote,
            **request.form(),
        }
        with self._lock:
            self._prefix = ""
            pieces = starts(request.asked) if isinstance(request.asked, str) else []
            self._read_pieces(pieces, request.model)
            found = self._loaded().handle_chat_completions({**asked, "cache_prompt": bool(pieces)})
            if "error" in found:
                self._starts = []
        _no_error(found, request.model)
        choice, usage = found["choices"][0], found["usage"]
        return Answer(
            choice["message"]["content"] or "",
            Usage(usage["prompt_tokens"], usage["completion_tokens"]),
            choice["finish_reason"] or "",
        )

    def choose(self, choice: Choice) -> Likely:
        """How likely each token is next. Raises ModelError."""
        with self._lock:
            self._read(choice.prefix)
            found = self._loaded().handle_completions(
                {
                    "prompt": choice.prefix + choice.text,
                    "n_predict": 1,
                    "max_tokens": 1,
                    "temperature": 0,
                    "logprobs": _LIKELIEST,
                    "n_probs": _LIKELIEST,
                    "cache_prompt": True,
                }
            )
        _no_error(found, choice.model)
        likeliest = found["choices"][0]["logprobs"]["content"][0]["top_logprobs"]
        said = {each["token"]: round(each["logprob"], 6) for each in likeliest}
        kept = {token: said[token] for token in choice.tokens if token in said}
        return Likely(kept, min(said.values()), found["usage"]["prompt_tokens"])

    def _read_pieces(self, pieces: list[str], model: str) -> None:
        """Have exactly these pieces of a user's message read, each by a pass of its own.

        The last of those that are there is asked for again: so the model forgets all that it read behind it.
        """
        there, self._starts = shared(pieces, self._starts), []
        for piece in pieces[max(there - 1, 0) :]:
            reads = {"messages": said(piece), "max_tokens": 0, "cache_prompt": piece != pieces[0] or there > 0}
            _no_error(self._loaded().handle_chat_completions(reads), model)
        self._starts = pieces

    def _read(self, prefix: str) -> None:
        """Have exactly this read, before a text that follows it.

        The sums of a forward pass depend in their last bits on how many tokens it takes at once, so reading "what the
        call before left" drifts (0.18 of a logit was seen). Here it is always the whole prefix, read alone and once,
        then its last token again: the same bits whatever was asked before, 2.5 times as fast as reading it each time.
        """
        reads = {"prompt": prefix, "n_predict": 0, "max_tokens": 0}
        if prefix != self._prefix:
            self._prefix, self._starts = "", []
            self._loaded().handle_completions({**reads, "cache_prompt": False})
            self._prefix = prefix
        self._loaded().handle_completions({**reads, "cache_prompt": True})

    def _loaded(self) -> Any:
        if self._server is None:
            from xllamacpp import CommonParams, Server

            asked = CommonParams()
            asked.model.path = self._gguf
            asked.n_ctx, asked.n_parallel = self._window, 1
            asked.cpuparams.n_threads = asked.cpuparams_batch.n_threads = self._threads
            asked.cache_prompt, asked.cache_ram_mib, asked.n_ctx_checkpoints = False, 0, 0
            asked.ui = asked.endpoint_slots = asked.warmup = False
            asked.verbosity = -1
            try:
                self._server = Server(asked)
            except RuntimeError:
                raise ModelError(
                    f"{self._gguf}: llama.cpp cannot load it: is it whole, and of a kind it knows?"
                ) from None
        return self._server


def _no_error(found: Any, model: str) -> None:
    if "error" in found:
        raise ModelError(f"{model}: {found['error'].get('message', found['error'])}")
