"""Read and write a baseline: the figures of a run by conversation, as a small JSON file to be reviewed and kept in git.

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

A line has the figures of one strategy and one metric for all conversations in their order: a number, or the two sums
of a ratio; null where there is none. A single 0 stands for 0 in every conversation. Everything is sorted, so the same
run gives the same bytes, and a change to one strategy changes its lines only.
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


def write(run: MeasuredRun, file: Path) -> None:
    """Write a baseline, whole or not at all. Raises RunError if it cannot be written."""
    # As root, replacing /dev/null by a file would succeed, and break the machine.
    if file.exists() and not file.is_file():
        raise RunError(f"{file}: cannot be written: it is no file; - is standard output")
    draft = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        draft.write_text(as_text(run), encoding="utf-8")
        os.replace(draft, file)
    except OSError as error:
        raise RunError(f"{file}: cannot be written: {error.strerror or error}") from None
    finally:
        draft.unlink(missing_ok=True)


def as_text(run: MeasuredRun) -> str:
    """Return the text of a baseline file."""
    names = sorted(run.digests)
    order = [list(run.digests).index(name) for name in names]
    about = {name: run.metrics[name] for name in sorted(run.metrics)}
    figures = {
        strategy: {
            name: _column(run.sums[strategy][name][order], run.metrics[name].form)
            for name in sorted(run.sums[strategy])
        }
        for strategy in sorted(run.sums)
    }
    lines = [
        "{",
        f'  "format": {FORMAT},',
        f'  "encoding": {_json(run.encoding)},',
        *_table("conversations", {name: run.digests[name] for name in names}, "  ", ","),
        *_table("metrics", about, "  ", ","),
        '  "figures": {',
    ]
    for strategy, figures_of_strategy in figures.items():
        lines += _table(strategy, figures_of_strategy, "    ", "," * (strategy != list(figures)[-1]))
    return "\n".join([*lines, "  }", "}", ""])


def _table(name: str, rows: dict[str, Any], indent: str, end: str) -> Iterator[str]:
    """Yield the lines of a table, one per entry."""
    yield f"{indent}{_json(name)}: {{"
    for at, (key, value) in enumerate(rows.items(), 1):
        yield f"{indent}  {_json(key)}: {_json(value)}" + "," * (at < len(rows))
    yield f"{indent}}}{end}"


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()


def _column(sums: Floats, form: str) -> Any:
    """Return the figures of one strategy and one metric."""
    if form == "total":
        tops = [_number(top) for top, _ in sums.tolist()]
        return 0 if tops and not any(top is None or top for top in tops) else tops
    return [None if np.isnan(top) else [_number(top), _number(bottom)] for top, bottom in sums.tolist()]


def _number(value: float) -> float | int | None:
    if np.isnan(value):
        return None
    return int(value) if value.is_integer() else value


def read(file: Path) -> MeasuredRun:
    """Read a baseline. Raises RunError, with the field, for a file that is damaged or no baseline."""
    try:
        baseline = msgspec.json.decode(file.read_bytes(), type=_File)
    except FileNotFoundError:
        raise RunError(f"{file}: there is no baseline: make one with `ctxbench baseline RUN --out {file}`") from None
    except OSError as error:
        raise RunError(f"{file}: cannot be read: {error.strerror or error}") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise RunError(f"{file}: damaged, or no baseline ({error}): {NEW}") from None
    if baseline.format != FORMAT:
        raise RunError(f"{file}: a baseline of format {baseline.format}, this version reads {FORMAT}: {NEW}")
    size = len(baseline.conversations)
    sums: dict[str, dict[str, Floats]] = {}
    for strategy, figures in baseline.figures.items():
        sums[strategy] = {}
        for name, column in figures.items():
            place = f"{file}: figures[{strategy!r}][{name!r}]"
            if name not in baseline.metrics:
                raise RunError(f"{place}: no metric of this name is described in `metrics`: {NEW}")
            sums[strategy][name] = _sums(column, baseline.metrics[name].form, size, place)
    return MeasuredRun(str(file), baseline.encoding, baseline.conversations, baseline.metrics, sums)


def _sums(column: Any, form: str, size: int, place: str) -> Floats:
    """Return both sums of each conversation. Raises RunError for an entry that is no figure."""
    rows = [0] * size if column == 0 and form == "total" else column
    if not isinstance(rows, list) or len(rows) != size:
        what = f"{len(rows)} figures" if isinstance(rows, list) else "no list"
        raise RunError(f"{place}: {what} for {size} conversations: {NEW}")
    sums = np.full((size, 2), np.nan)
    for at, row in enumerate(rows):
        if row is None:
            continue
        pair = [row, 1] if form == "total" else row
        try:
            sums[at] = msgspec.convert(pair, tuple[float, float])
        except msgspec.ValidationError:
            wanted = "a number" if form == "total" else "two numbers"
            raise RunError(f"{place}[{at}]: {row!r} is not {wanted}: {NEW}") from None
        if not np.isfinite(sums[at]).all():
            raise RunError(f"{place}[{at}]: {row!r} is not a finite number: {NEW}")
    return sums
