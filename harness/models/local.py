"""A model in this process: a GGUF file through llama.cpp (extra `local`: xllamacpp, one wheel with no dependencies).

One thread by default: llama.cpp's threads wait by spinning; two on two busy cores were 5 to 10 times slower than one.
The prompt cache is off and the seed fixed: the same request has the same answer whatever was asked before it. A model
is known by its content, not by its path: `local:NAME@FINGERPRINT` is its name in results and in the cassette.
"""

from __future__ import annotations

import hashlib
import os
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ...metrics.prices import Usage
from ...scenarios.errors import MissingExtra, SetupError
from ...strategies.base import ModelError
from .recorded import Answer, Request
from .weights import weights

_BLOCKS, _BLOCK = 16, 1 << 16


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

    def chat(self, request: Request) -> Answer:
        """The model's answer. Raises ModelError."""
        found = self._loaded().handle_chat_completions(
            {
                "messages": [{"role": "user", "content": request.text}],
                "temperature": request.temperature,
                "max_tokens": request.max_tokens,
                "cache_prompt": False,
                "seed": 0,
            }
        )
        if "error" in found:
            raise ModelError(f"{request.model}: {found['error'].get('message', found['error'])}")
        choice, usage = found["choices"][0], found["usage"]
        return Answer(
            choice["message"]["content"] or "",
            Usage(usage["prompt_tokens"], usage["completion_tokens"]),
            choice["finish_reason"] or "",
        )

    def _loaded(self) -> Any:
        if self._server is None:
            from xllamacpp import CommonParams, Server

            asked = CommonParams()
            asked.model.path = self._gguf
            asked.n_ctx, asked.n_parallel = self._window, 1
            asked.cpuparams.n_threads = asked.cpuparams_batch.n_threads = self._threads
            asked.cache_prompt, asked.cache_ram_mib = False, 0
            asked.ui = asked.endpoint_slots = asked.warmup = False
            asked.verbosity = -1
            try:
                self._server = Server(asked)
            except RuntimeError:
                raise ModelError(
                    f"{self._gguf}: llama.cpp cannot load it: is it whole, and of a kind it knows?"
                ) from None
        return self._server
