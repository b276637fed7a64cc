"""What a model replied, read strictly: one JSON object of the form that was asked for, or no verdict at all."""

from __future__ import annotations

import json
import re
from typing import Any, Literal, TypeVar

import msgspec

from ...metrics.value import Missing

_FENCED = re.compile(r"\s*```(?:json)?\s*\n(.*?)\n\s*```\s*", re.DOTALL)
_SHOWN = 80


class Verdict(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Of one candidate."""

    verdict: Literal["CORRECT", "WRONG"]
    reason: str = ""


T = TypeVar("T", bound=msgspec.Struct)


def schema_of(kind: type[msgspec.Struct]) -> dict[str, Any]:
    """The JSON schema of a reply: every field, the reason before what follows from it."""
    found = msgspec.json.schema(kind)["$defs"][kind.__name__]["properties"]
    names = sorted(found, key=lambda name: name != "reason")
    fields = {name: {key: value for key, value in found[name].items() if key != "default"} for name in names}
    return {"type": "object", "properties": fields, "required": names, "additionalProperties": False}


def read(text: str, kind: type[T]) -> T | Missing:
    """The reply. Prose, broken JSON, two objects, a field twice, other fields or words: Missing, and why."""
    found = _FENCED.fullmatch(text)
    inner = found.group(1) if found else text
    try:
        made = msgspec.json.decode(inner, type=kind)
        json.loads(inner, object_pairs_hook=_once)
    except (ValueError, RecursionError) as error:  # msgspec's errors are of this kind
        return Missing("failed", f"the grader's reply is no verdict: {_why(inner, error)}")
    return made


def _why(text: str, error: Exception) -> str:
    if not text.strip():
        return "it is empty"
    what = str(error) if text.lstrip().startswith("{") else "it is no JSON object"
    return f"{what}: {' '.join(text.split())[:_SHOWN]!r}"


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    names = [name for name, _ in pairs]
    if len(set(names)) < len(names):
        raise ValueError("a field stands in it twice")
    return dict(pairs)
