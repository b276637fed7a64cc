"""The JSON Schema of a line of ctxbench JSONL: `python -m ctxbench.scenarios.schema`, kept in docs/."""

from __future__ import annotations

import sys
from typing import Any

import msgspec

from .model import Conversation


def schema() -> dict[str, Any]:
    """The schema of one conversation (JSON Schema 2020-12)."""
    found = msgspec.json.schema(Conversation)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "ctxbench conversation", **found}


if __name__ == "__main__":
    sys.stdout.write(msgspec.json.format(msgspec.json.encode(schema()), indent=2).decode() + "\n")
