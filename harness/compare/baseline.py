"""A baseline: the figures of a run by conversation, as a small JSON file that is reviewed and kept in git.

    {
      "format": 2,
      "encoding": "o200k_base",
      "conversations": {"coding/en-0-2": "SHA-256 of its content", …},
      "metrics": {"grounding": {"unit": "share", "better": "higher", "form": "ratio", "version": "1"}, …},
      "figures": {
        "none": {
          "grounding": [[8,10],[1,2],null],
          "tokens_sent": [3120,455,null],
          "overflows": 0

A line has the figures of one strategy and one metric, of all conversations in their order: a number, or the two sums
of a ratio; null where there is none. 0 alone is 0 in each. Everything is sorted, so the same run is the same bytes, and
a change of one strategy is a change of its lines.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from ...scenarios.errors import RunError
from .figures import About, Floats, MeasuredRun

FORMAT = 2
NEW = "make it anew with `ctxbench baseline`"


class _File(msgspec.Struct, forbid_unknown_fields=True):
    format: int
    encoding: str
    conversations: dict[str, str]
    metrics: dict[str, About]
    figures: dict[str, dict[str, Any]]


def write(found: MeasuredRun, file: Path) -> None:
    """Write a baseline, whole or not at all. Raises RunError if it cannot be written."""
    if file.exists() and not file.is_file():  # root may put a file in the place of /dev/null
        raise RunError(f"{file}: cannot be written: it is no file; - is standard output")
    draft = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        draft.write_text(as_text(found), encoding="utf-8")
        os.replace(draft, file)
    except OSError as error:
        raise RunError(f"{file}: cannot be written: {error.strerror or error}") from None
    finally:
        draft.unlink(missing_ok=True)


def as_text(found: MeasuredRun) -> str:
    """The file's text."""
    names = sorted(found.digests)
    order = [list(found.digests).index(name) for name in names]
    about = {name: found.metrics[name] for name in sorted(found.metrics)}
    figures = {
        strategy: {
            name: _column(found.sums[strategy][name][order], found.metrics[name].form)
            for name in sorted(found.sums[strategy])
        }
        for strategy in sorted(found.sums)
    }
    lines = [
        "{",
        f'  "format": {FORMAT},',
        f'  "encoding": {_json(found.encoding)},',
        *_table("conversations", {name: found.digests[name] for name in names}, "  ", ","),
        *_table("metrics", about, "  ", ","),
        '  "figures": {',
    ]
    for strategy, those in figures.items():
        lines += _table(strategy, those, "    ", "," * (strategy != list(figures)[-1]))
    return "\n".join([*lines, "  }", "}", ""])


def _table(name: str, rows: dict[str, Any], indent: str, end: str) -> Iterator[str]:
    """A table with a line for each entry."""
    yield f"{indent}{_json(name)}: {{"
    for at, (key, value) in enumerate(rows.items(), 1):
        yield f"{indent}  {_json(key)}: {_json(value)}" + "," * (at < len(rows))
    yield f"{indent}}}{end}"


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()


def _column(sums: Floats, form: str) -> Any:
    """The figures of one strategy and one metric."""
    if form == "total":
        tops = [_number(top) for top, _ in sums.tolist()]
        return 0 if tops and not any(top is None or top for top in tops) else tops
    return [None if np.isnan(top) else [_number(top), _number(bottom)] for top, bottom in sums.tolist()]


def _number(value: float) -> float | int | None:
    if np.isnan(value):
        return None
    return int(value) if value.is_integer() else value


def read(file: Path) -> MeasuredRun:
    """A baseline. Raises RunError, with the field, for a file that is none or is damaged."""
    try:
        found = msgspec.json.decode(file.read_bytes(), type=_File)
    except FileNotFoundError:
        raise RunError(f"{file}: there is no baseline: make one with `ctxbench baseline RUN --out {file}`") from None
    except OSError as error:
        raise RunError(f"{file}: cannot be read: {error.strerror or error}") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise RunError(f"{file}: damaged, or no baseline ({error}): {NEW}") from None
    if found.format != FORMAT:
        raise RunError(f"{file}: a baseline of format {found.format}, this version reads {FORMAT}: {NEW}")
    size = len(found.conversations)
    sums: dict[str, dict[str, Floats]] = {}
    for strategy, figures in found.figures.items():
        sums[strategy] = {}
        for name, column in figures.items():
            place = f"{file}: figures[{strategy!r}][{name!r}]"
            if name not in found.metrics:
                raise RunError(f"{place}: no metric of this name is described in `metrics`: {NEW}")
            sums[strategy][name] = _sums(column, found.metrics[name].form, size, place)
    return MeasuredRun(str(file), found.encoding, found.conversations, found.metrics, sums)


def _sums(column: Any, form: str, size: int, place: str) -> Floats:
    """Both sums of each conversation. Raises RunError for what is no figure."""
    rows = [0] * size if column == 0 and form == "total" else column
    if not isinstance(rows, list) or len(rows) != size:
        what = f"{len(rows)} figures" if isinstance(rows, list) else "no list"
        raise RunError(f"{place}: {what} for {size} conversations: {NEW}")
    made = np.full((size, 2), np.nan)
    for at, row in enumerate(rows):
        if row is None:
            continue
        pair = [row, 1] if form == "total" else row
        try:
            made[at] = msgspec.convert(pair, tuple[float, float])
        except msgspec.ValidationError:
            wanted = "a number" if form == "total" else "two numbers"
            raise RunError(f"{place}[{at}]: {row!r} is not {wanted}: {NEW}") from None
        if not np.isfinite(made[at]).all():
            raise RunError(f"{place}[{at}]: {row!r} is not a finite number: {NEW}")
    return made
