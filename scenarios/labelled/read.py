"""Paths in, labelled answers out: which format each file has, and every id once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from ..errors import Place, RecordingError
from ..folder import files_of
from ..source import Problems, head, key_paths
from . import evouna, halluqa, locomo, mtrag, user
from .labelled import Format, Labelled

FORMATS: dict[str, Format] = {
    "evouna": evouna.FORMAT,
    "halluqa": halluqa.FORMAT,
    "halluqa-outputs": halluqa.OUTPUTS,
    "locomo": locomo.FORMAT,
    "mtrag": mtrag.FORMAT,
    "user": user.FORMAT,
}
"""The formats, by the names that errors call them."""


def read(paths: Iterable[Path], problems: Problems) -> Iterator[Labelled]:
    """Every labelled answer of the files, and of the folders' files, in the order of the paths.

    A named file of no known format is a problem; in a folder it is only ignored, by name. LoCoMo's answers are read
    with the corrections that stand among the files. A second answer of a set and id gets the suffix `~2`, and so on.
    """
    seen: dict[tuple[str, str], int] = {}
    named = [(path, file) for path, files in files_of(paths, problems) for file in files]
    corrections = locomo.Corrections.among([file for _, file in named], problems)
    for path, file in named:
        if corrections.has(file):
            continue
        try:
            form = detect(file)
            if form is None:
                _unknown(file, problems, named=file == path)
                continue
            for answer in form.read(file, problems, corrections):
                yield _once(answer, seen)
        except RecordingError as error:
            problems.add(error)


def detect(path: Path) -> Format | None:
    """The format whose keys are all in the start of the file; of several the one with most; None if none fits.

    Raises RecordingError if the file cannot be read.
    """
    keys = key_paths(head(path))
    fits = [(len(shape), name) for name, form in FORMATS.items() for shape in form.shapes if shape <= keys]
    return FORMATS[max(fits)[1]] if fits else None


def _once(answer: Labelled, seen: dict[tuple[str, str], int]) -> Labelled:
    name = answer.id
    while (answer.set, name) in seen:
        seen[answer.set, answer.id] += 1
        name = f"{answer.id}~{seen[answer.set, answer.id]}"
    seen[answer.set, name] = 1
    return answer if name == answer.id else msgspec.structs.replace(answer, id=name)


def _unknown(path: Path, problems: Problems, named: bool) -> None:
    if not named:
        problems.ignored.append(str(path))
    elif not head(path).strip():
        problems.add(RecordingError(Place(str(path)), "the file is empty", "leave it out"))
    else:
        formats = ", ".join(FORMATS)
        remedy = f"known are {formats}; or write JSON Lines of {user.EXAMPLE}"
        problems.add(RecordingError(Place(str(path)), "no known format of labelled answers fits", remedy))
