"""Where answers and grades are kept in a run folder.

    answers/ANSWERER/SHARD.parquet          what was answered to each probe, under every strategy of the shard
    grades/ANSWERER/GRADER/SHARD.parquet    how that was graded

The names are those of the answerer and the grader, made fit for a folder. Each part says in its metadata by whom and of
what it was made, and counts only as long as that is still so; it is whole or not there at all.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from ...metrics.grading.rules import Rules
from ..store import placed

_NAME = pa.dictionary(pa.int32(), pa.string())
_TEXTS = pa.list_(pa.string())

COLUMNS: Mapping[str, Mapping[str, tuple[pa.DataType, str]]] = {
    "answers": {
        "conversation": (_NAME, "id of the conversation"),
        "strategy": (_NAME, "the strategy as text, or a bound: last_turn, evidence_only"),
        "number": (pa.int32(), "of the probe in the conversation's list, from 0"),
        "probe": (pa.string(), "its id"),
        "category": (_NAME, "what kind of question, in the recording's own word"),
        "answerable": (pa.bool_(), "whether what it asks for was said"),
        "gold": (pa.bool_(), "whether it can be graded: it has an accepted answer or a rubric, or cannot be answered"),
        "answer": (pa.string(), "what was answered; null if nothing was"),
        "missing": (pa.string(), "why nothing was"),
        "support": (pa.string(), "id of the message that the answer stands in, where the answerer knows"),
        "rounds": (pa.int32(), "model calls"),
        "input_tokens": (pa.int64(), "of all rounds, as reported; for `offline` by the run's count"),
        "output_tokens": (pa.int64(), "of all rounds"),
        "cost": (pa.float64(), "of all rounds in US dollars; null if the price is not known"),
        "called": (_TEXTS, "the tools that the model called, in order"),
        "events": (_TEXTS, "what the strategy did for them, as JSON"),
    },
    "grades": {
        "conversation": (_NAME, "id of the conversation"),
        "strategy": (_NAME, "the strategy as text"),
        "number": (pa.int32(), "of the probe"),
        "correct": (pa.bool_(), "whether the answer is right; null if it was not graded"),
        "score": (pa.float64(), "on the grader's own scale"),
        "reason": (pa.string(), "in the grader's words"),
        "raw": (pa.string(), "what a model replied, whole"),
        "missing": (pa.string(), "why it was not graded"),
    },
}
"""Each table's columns: the type, and what it means."""

SCHEMAS = {
    table: pa.schema([(name, kind) for name, (kind, _) in columns.items()]) for table, columns in COLUMNS.items()
}


def folder_of(name: str) -> str:
    """A folder's name for an answerer or a grader: no two have the same."""
    plain = re.sub(r"[^A-Za-z0-9.]+", "-", name).strip("-.")[:60]
    return plain if plain == name else f"{plain}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"


def digest_of(*parts: str | bytes) -> str:
    """SHA-256 over some texts and files' bytes, in order."""
    made = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        made.update(len(data).to_bytes(8, "big") + data)
    return made.hexdigest()


def shards(run: Path) -> list[str]:
    """The names of the shards of a run in which probes were asked: of the bounds, at least."""
    names = sorted(path.stem for path in (run / "probes").glob("*.parquet") if path.stem.isdecimal())
    return [name for name in names if was_asked(run, name)]


def was_asked(run: Path, shard: str) -> bool:
    """Whether a shard has probes."""
    return bool(pq.read_metadata(run / "probes" / f"{shard}.parquet").num_rows)


def contexts_of(run: Path, shard: str) -> str:
    """The digest of all that answers to a shard's probes depend on, but for who answers."""
    parts = [path for table in ("conversations", "steps", "contexts", "probes") for path in _parts(run / table, shard)]
    return digest_of(*(path.read_bytes() for path in parts))


def _parts(folder: Path, shard: str) -> list[Path]:
    """Of a shard, and of a shard under each strategy."""
    return sorted([*folder.glob(f"{shard}.parquet"), *folder.glob(f"{shard}-*.parquet")])


def graded_of(grader: str, answers: Path) -> dict[str, str]:
    """By whom and of what the grades of a part are made. What UNKNOWN comes to is said by rules."""
    return {"by": grader, "of": digest_of(answers.read_bytes()), "unknown by": Rules().name}


def made_by(path: Path) -> dict[str, str]:
    """By whom and of what a part was made; empty if it is not there, or damaged."""
    try:
        found = pq.read_schema(path).metadata or {}
        return {key.decode(): value.decode() for key, value in found.items()}
    except (OSError, pa.ArrowException, UnicodeDecodeError):
        return {}


def write(path: Path, table: str, rows: Sequence[Mapping[str, Any]], made: Mapping[str, str]) -> None:
    """Write a part, whole or not at all. `made`: by whom and of what."""
    schema = SCHEMAS[table].with_metadata(dict(made))
    columns = [pa.array([row[field.name] for row in rows], field.type) for field in schema]
    with placed(path) as draft:
        pq.write_table(pa.Table.from_arrays(columns, schema=schema), draft, compression="zstd", write_statistics=False)


def read(path: Path, table: str, made: Mapping[str, str]) -> pa.Table | None:
    """A part that was made so; None if it is not there, was made by or of something else, or is damaged."""
    if made_by(path) != dict(made):
        return None
    try:
        return pq.read_table(path, schema=SCHEMAS[table])
    except (OSError, pa.ArrowException):
        return None
