"""Write conversations as a folder of a Hugging Face data set: Parquet, `dataset_info.json` and a card.

Each row is a conversation. `messages` and `tools` are in OpenAI's form, for anybody's programs; `ctxbench` is the whole
recording as JSON, with times, usage, probes and evidence, from which the reader `huggingface` has it back without loss.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from ctxbench.scenarios.chat import chat_message, chat_tool
from ctxbench.scenarios.errors import RunError
from ctxbench.scenarios.model import Conversation

from ..folder.files import placed
from ..folder.run import Run

DATA = "data/train-00000-of-00001.parquet"
# Conversations of a row group: few enough that a viewer reads one without the others.
_GROUP = 100

_CALL = pa.struct(
    [
        ("id", pa.string()),
        ("type", pa.string()),
        ("function", pa.struct([("name", pa.string()), ("arguments", pa.string())])),
    ]
)
_MESSAGE = pa.struct(
    [
        ("role", pa.string()),
        ("content", pa.string()),
        ("name", pa.string()),
        ("tool_calls", pa.list_(_CALL)),
        ("tool_call_id", pa.string()),
    ]
)
SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("language", pa.string()),
        ("licence", pa.string()),
        ("messages", pa.list_(_MESSAGE)),
        ("tools", pa.string()),
        ("ctxbench", pa.string()),
    ]
)
"""Columns of the data set. `tools` and `ctxbench` are JSON texts."""


def _is_ours(folder: Path) -> bool:
    """Return whether a folder holds a data set that this module wrote: it has a column of whole recordings."""
    try:
        features = json.loads((folder / "dataset_info.json").read_text("utf-8"))["features"]
        return "ctxbench" in features
    except (OSError, ValueError, KeyError, TypeError):
        return False


def write_dataset(run: Run, folder: Path) -> int:
    """Write the data set of a run's recordings and return the number of conversations.

    Raises RunError if the folder holds anything else than a data set of ours, or cannot be written.
    """
    origin = f" from a run whose recordings have the digest `{run.manifest.digest}`"
    return write_conversations(run.conversations(), folder, run.manifest.plan.names, "--out", origin)


def write_conversations(
    conversations: Iterator[Conversation], folder: Path, names: Sequence[str], option: str, origin: str = ""
) -> int:
    """Write a data set and return the number of conversations; without any, nothing is written.

    Its card names the recordings, and ends the words "Written by ctxbench" with their `origin`. Raises RunError if the
    folder, which the user named by `option`, holds anything else than a data set of ours, or cannot be written.
    """
    try:
        if folder.exists() and not folder.is_dir():
            raise RunError(f"{folder}: is not a folder: name another with {option}")
        if folder.exists() and any(folder.iterdir()) and not _is_ours(folder):
            raise RunError(
                f"{folder}: holds something else than a data set of ctxbench: name another folder with {option}"
            )
        group = list(islice(conversations, _GROUP))
        if not group:
            return 0
        contents = _Contents()
        with placed(folder / DATA) as draft, pq.ParquetWriter(draft, SCHEMA, compression="zstd") as writer:
            while group:
                writer.write_table(pa.Table.from_pylist([_row(each) for each in group], SCHEMA))
                contents.add(group)
                group = list(islice(conversations, _GROUP))
        size = (folder / DATA).stat().st_size
        with placed(folder / "dataset_info.json") as draft:
            draft.write_text(json.dumps(_info(contents.conversations, size), indent=2) + "\n", "utf-8")
        with placed(folder / "README.md") as draft:
            draft.write_text(_card(contents, names, origin), "utf-8")
    except OSError as error:
        raise RunError(f"{folder}: cannot be written: {error.strerror or error}") from None
    return contents.conversations


@dataclass(slots=True)
class _Contents:
    """Facts about the conversations for the card."""

    conversations: int = 0
    messages: int = 0
    languages: set[str] = field(default_factory=set)
    licences: set[str] = field(default_factory=set)

    def add(self, group: Sequence[Conversation]) -> None:
        self.conversations += len(group)
        self.messages += sum(len(conversation.messages) for conversation in group)
        self.languages |= {conversation.language for conversation in group if conversation.language}
        self.licences |= {conversation.licence for conversation in group if conversation.licence}


def _row(conversation: Conversation) -> dict[str, Any]:
    return {
        "id": conversation.id,
        "language": conversation.language,
        "licence": conversation.licence,
        "messages": [chat_message(message) for message in conversation.messages],
        "tools": json.dumps([chat_tool(tool) for tool in conversation.tools], ensure_ascii=False),
        "ctxbench": conversation.to_json().decode(),
    }


def _info(count: int, size: int) -> dict[str, Any]:
    """Return `dataset_info.json`: the columns, and the size of the only split."""
    split = {"name": "train", "num_bytes": size, "num_examples": count, "dataset_name": "ctxbench"}
    features = {field.name: _feature(field.type) for field in SCHEMA}
    return {"description": "Conversations of language model agents.", "features": features, "splits": {"train": split}}


def _feature(kind: pa.DataType) -> Any:
    """Return a column's type in the words of the library `datasets`."""
    if pa.types.is_list(kind):
        return [_feature(kind.value_type)]
    if pa.types.is_struct(kind):
        return {field.name: _feature(field.type) for field in kind}
    return {"dtype": "string", "_type": "Value"}


def _card(contents: _Contents, names: Sequence[str], origin: str) -> str:
    text = files(__package__).joinpath("data/dataset_card.md").read_text("utf-8")
    values = {
        "languages": _yaml(sorted(contents.languages) or ["und"]),
        "conversations": f"{contents.conversations:,}",
        "messages": f"{contents.messages:,}",
        "size": _size(contents.conversations),
        "data": DATA,
        "licences": "; ".join(sorted(contents.licences)) or "not recorded",
        "origin": origin,
        "recordings": ", ".join(Path(name).name for name in names),
    }
    for name, value in values.items():
        text = text.replace("{" + name + "}", value)
    return text


def _yaml(words: Sequence[str]) -> str:
    return json.dumps(list(words))  # which YAML reads as well


def _size(count: int) -> str:
    """Return the category of the hub for a number of rows."""
    bounds: Iterator[tuple[int, str]] = iter([(1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K")])
    return next((name for bound, name in bounds if count < bound), "100K<n<1M")
