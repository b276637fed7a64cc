"""The card of an archived tool result, its identity, its placeholder, and the tool that loads it.

The texts are in `strategies/data/texts.toml`. The Chinese placeholder, tool and note are those of design document
001 (§3.2, §3.5, §4.2). The other texts, and the English, are ours: the document has none.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from functools import lru_cache
from uuid import UUID, uuid5

from ctxbench.metrics.extract import extract
from ctxbench.metrics.language import LANGUAGES, Language
from ctxbench.metrics.values import exact_values
from ctxbench.scenarios.model import Tool

from ..base import texts
from ..parts.language import moment

NAMESPACE = UUID("6f1d3a52-5d0c-5b0e-9d55-2f4a7d1c0001")  # namespace of the archive's uuids; any fixed one would do
TOOL = "load_tool_history"


@dataclass(frozen=True, slots=True)
class Card:
    """Everything about an archived result but its content: what its placeholder shows and what searches compare."""

    uuid: str
    conversation: str
    thread: str  # empty = none
    tool: str
    arguments: object  # the call's arguments as JSON values, as their text where that is not JSON, None without a call
    query: str
    summary: str
    length: int  # characters of the result
    sources: tuple[str, ...]
    created: float | None  # recorded time of the result, in seconds since 1970; None = the recording has no times

    @property
    def text(self) -> str:
        return "\n".join((self.tool, self.query, self.summary, *self.sources))


def identify(conversation: str, message: str, text: str) -> str:
    """Return the uuid of a result: the same whenever the same message of the same conversation has the same text.

    A version 5 uuid of the SHA-256 over the three, each with its length, so that no two triples are alike.
    """
    digest = hashlib.sha256()
    for part in (conversation, message, text):
        data = part.encode("utf-8", "surrogatepass")
        # With its length before each part: otherwise ("ab", "c", …) and ("a", "bc", …) would be one result.
        digest.update(len(data).to_bytes(8, "big"))
        digest.update(data)
    return str(uuid5(NAMESPACE, digest.hexdigest()))


def fit_column(name: str) -> str:
    """Return a name that fits a column: itself, or its uuid if it is longer or cannot be stored as it is."""
    return name if len(name) <= 36 and name.isprintable() else identify(name, "", "")


# Characters that databases or tokenizers reject, and white space.
_BLANK = re.compile("[\\s\x00-\x1f\x7f\ud800-\udfff]+")
_TITLE = re.compile(
    r"""^\#{1,6}[ \t]+(?P<heading>[^\n]{1,200})$
    | ["'](?:title|标题|source|filename|file_name|文件名)["'][ \t]*:[ \t]*["'](?P<field>[^"'\n]{1,200})["']
    | ^(?:title|source|标题|来源|文档)[ \t]*[:：][ \t]*(?P<line>[^\n]{1,200})$
    | 《(?P<book>[^》\n]{1,100})》""",
    re.VERBOSE | re.MULTILINE | re.IGNORECASE,
)


def single_line(text: str, most: int) -> str:
    """Return a text as one line of at most `most` characters, without those that a database or tokenizer rejects."""
    flat = _BLANK.sub(" ", text).strip()
    # The ellipsis is one of the `most` characters.
    return flat if len(flat) <= most else flat[: most - 1] + "…"


def clean_lines(text: str, most: int) -> str:
    """Return a text of at most `most` characters, each line as by `single_line`, without empty lines."""
    cleaned = "\n".join(line for row in text.splitlines() if (line := single_line(row, most)))
    return cleaned if len(cleaned) <= most else cleaned[: most - 1] + "…"


def arguments_of(text: str) -> object:
    """Return a call's arguments as JSON values, or as their text where that is no (finite) JSON."""
    try:
        arguments: object = json.loads(text)
        json.dumps(arguments, allow_nan=False)
    except (ValueError, RecursionError):
        return text
    return arguments


def query_of(arguments: object, most: int) -> str:
    """Return the query of a call: a lone argument by itself, several with their names, `name=value; …`."""
    if isinstance(arguments, dict):
        shown = [(str(name), _as_text(value)) for name, value in arguments.items()]
        if len(shown) == 1:
            return single_line(shown[0][1], most)
        return single_line("; ".join(f"{name}={value}" for name, value in shown), most)
    return single_line("" if arguments is None else _as_text(arguments), most)


def _as_text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


@lru_cache(512)  # strategies that archive the same results follow one another
def summary_of(text: str, most: int) -> str:
    """Return the most important sentences in their order, one per line, at most `most` characters together."""
    return clean_lines(extract([text], most, len), most) or clean_lines(text, most)


def sources_of(text: str, most: int) -> tuple[str, ...]:
    """Return the addresses, then the paths, then the titles that a result names, each in its order: searches rank."""
    sources: dict[str, list[str]] = {"url": [], "path": [], "title": []}
    for kind, value in exact_values(text):
        if kind in sources:
            sources[kind].append(single_line(value, 200))
    for title in _TITLE.finditer(text):
        sources["title"].append(single_line(next(filter(None, title.groups())), 200))
    names = dict.fromkeys(name for kind in sources.values() for name in kind if name)
    return tuple(names)[:most]


def archive_text(field: str, language: Language) -> str:
    """Return one of the archive's texts, `archive_FIELD` of `data/texts.toml`."""
    return texts(f"archive_{field}")[language]


_UUID = "[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"


def _pattern(language: Language) -> re.Pattern[str]:
    """Return the pattern of all placeholders of a language, from the first character to the last."""
    hint = re.escape(archive_text("hint", language)).replace(re.escape("{uuid}"), "(?P=uuid)")
    parts = {
        "uuid": f"(?P<uuid>{_UUID})",
        "original_length": "[0-9]+",
        "sources_part": "(?s:.*)",  # the only field of several lines
        "hint": f"(?:{hint})?",
    }
    pieces = re.split(r"\{([a-z_]+)\}", archive_text("placeholder", language))  # text, field, text, …
    return re.compile(
        "".join(parts.get(piece, r"[^\n]*") if at % 2 else re.escape(piece) for at, piece in enumerate(pieces))
    )


_PLACEHOLDERS = tuple(map(_pattern, LANGUAGES))


def load_tool(language: Language) -> Tool:
    """Return the tool that the model is offered, with the design's schema."""
    properties = {"uuid": {"type": "string", "description": archive_text("uuid", language)}}
    schema = {"type": "object", "properties": properties, "required": ["uuid"]}
    return Tool(TOOL, archive_text("description", language), json.dumps(schema, ensure_ascii=False))


def placeholder(card: Card, summary: str, language: Language, offered: bool) -> str:
    """Return the placeholder of an archived result. Its last line names the tool, if that is offered."""
    listed = "".join(f"- {source}\n" for source in card.sources)
    return archive_text("placeholder", language).format(
        uuid=card.uuid,
        tool_name=card.tool,
        query_summary=card.query,
        timestamp=moment(card.created, "seconds") or archive_text("unknown_time", language),
        original_length=card.length,
        summary=summary,
        sources_part=archive_text("sources", language) + listed if listed else "",
        hint=archive_text("hint", language).format(uuid=card.uuid) if offered else "",
    )


def is_placeholder(text: str) -> bool:
    """Return whether a text is the placeholder of an archived result, in any language, with or without the tool."""
    return text.startswith("📎") and any(pattern.fullmatch(text) for pattern in _PLACEHOLDERS)
