"""Rows of one file of a run folder, by conversation and strategy: the file is read and taken apart once."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq


class PartRows:
    """One file of a table, held in memory. Whoever asks for each conversation and strategy of it pays for one pass."""

    def __init__(self, path: Path) -> None:
        """Read the file. Raises OSError and pyarrow's errors."""
        with pq.ParquetFile(path) as file:  # not `read_table`, which makes a data set of each file
            self._table: pa.Table = file.read(use_threads=False)
        self._rows: dict[tuple[str, ...], list[dict[str, Any]]] = {}
        self._places: dict[str, dict[str | None, list[int]]] = {}
        names = self._table.column("conversation").to_pylist()
        strategies: Sequence[str | None] = [None] * len(names)
        if "strategy" in self._table.column_names:
            strategies = self._table.column("strategy").to_pylist()
        for at, (name, strategy) in enumerate(zip(names, strategies, strict=True)):
            self._places.setdefault(name, {}).setdefault(strategy, []).append(at)

    def rows(self, conversation: str, strategy: str | None, columns: Sequence[str] | None) -> list[dict[str, Any]]:
        """Return the rows of a conversation, under one strategy or (None) all, in the order of the file."""
        places = self._places.get(conversation, {})
        chosen = sorted(at for some in places.values() for at in some) if strategy is None else places.get(strategy, ())
        if not chosen:
            return []
        rows = self._read(tuple(self._table.column_names if columns is None else columns))
        return [rows[at] for at in chosen]

    def _read(self, columns: tuple[str, ...]) -> list[dict[str, Any]]:
        if columns not in self._rows:
            self._rows[columns] = self._table.select(columns).to_pylist()
        return self._rows[columns]
