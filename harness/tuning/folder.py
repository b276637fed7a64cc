"""The folder of a search: what was asked for, what is needed to go on, and the result.

search.json             what must be the same for a search to go on
train.jsonl             the conversations that are searched on, lossless
held-out.jsonl          those held out
study.db                the trials: an Optuna study
figures/                what each setting came to
running/                what is being measured; gone when nothing is
tune.json, frontier.*   the result
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from shutil import rmtree
from typing import Any

import msgspec

from ...scenarios.errors import RunError
from ..store import alone, is_free, placed, unwritable

TRAIN, HELD = "train", "held-out"
_SEARCH, _RESULT = "search.json", "tune.json"
_FOLDERS = ("figures", "running")
_FILES = (_SEARCH, _RESULT, "study.db", f"{TRAIN}.jsonl", f"{HELD}.jsonl", "frontier.svg", "frontier.png")


@contextmanager
def entered(out: Path, identity: Mapping[str, Any], overwrite: bool) -> Iterator[None]:
    """Have a folder to oneself, new or with the same search in it. Raises RunError for any other."""
    try:
        _make(out)
        with alone(out):
            if overwrite:
                _clear(out)
            _enter(out / _SEARCH, identity)
            rmtree(out / "running", ignore_errors=True)
            yield
            rmtree(out / "running", ignore_errors=True)
    except OSError as error:
        raise unwritable(out, error) from None


def keep(result: Any, out: Path) -> None:
    """Write the result."""
    try:
        with placed(out / _RESULT) as draft:
            draft.write_bytes(msgspec.json.format(msgspec.json.encode(result), indent=2) + b"\n")
    except OSError as error:
        raise unwritable(out, error) from None


def _make(out: Path) -> None:
    if (out / _SEARCH).exists():
        return
    if out.exists() and (not out.is_dir() or not is_free(out)):
        raise RunError(f"{out}: is not the folder of a search and not empty: name another with --out")
    out.mkdir(parents=True, exist_ok=True)


def _clear(out: Path) -> None:
    """Remove what a search made, and nothing else."""
    for name in _FOLDERS:
        rmtree(out / name, ignore_errors=True)
    for name in _FILES:
        (out / name).unlink(missing_ok=True)


def _enter(path: Path, identity: Mapping[str, Any]) -> None:
    """Note what is searched, or see that it is the same."""
    if not path.exists():
        with placed(path) as draft:
            draft.write_bytes(msgspec.json.format(msgspec.json.encode(identity), indent=2) + b"\n")
        return
    try:
        found = msgspec.json.decode(path.read_bytes(), type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise RunError(f"{path}: damaged: add --overwrite, or name another --out") from None
    differ = [key for key, value in identity.items() if found.get(key) != value]
    if differ:
        what = ", ".join(differ)
        raise RunError(
            f"{path.parent}: holds another search (it differs in {what}): add --overwrite, or name another --out"
        )
