"""What a card says of a result: the query from the call's arguments, a summary, the sources named in the content.

Summaries are extracted (`metrics.extract`: the sentences with the most weight, numbers and names first) and not the
head of the text, which in search results and listings is mostly boilerplate; 20–60 ms for 50 000 characters, once.
"""

from __future__ import annotations

import json
import re

from ...metrics.extract import extract
from ...metrics.values import exact_values

_BLANK = re.compile("[\\s\x00-\x1f\x7f\ud800-\udfff]+")
_TITLE = re.compile(
    r"""^\#{1,6}[ \t]+(?P<heading>[^\n]{1,200})$
    | ["'](?:title|标题|source|filename|file_name|文件名)["'][ \t]*:[ \t]*["'](?P<field>[^"'\n]{1,200})["']
    | ^(?:title|source|标题|来源|文档)[ \t]*[:：][ \t]*(?P<line>[^\n]{1,200})$
    | 《(?P<book>[^》\n]{1,100})》""",
    re.VERBOSE | re.MULTILINE | re.IGNORECASE,
)


def line(text: str, most: int) -> str:
    """A text in one line of at most `most` characters, without what no database or tokenizer takes."""
    flat = _BLANK.sub(" ", text).strip()
    return flat if len(flat) <= most else flat[: most - 1] + "…"


def arguments_of(text: str) -> object:
    """A call's arguments as JSON values, or as they are where they are no (finite) JSON."""
    try:
        found: object = json.loads(text)
        json.dumps(found, allow_nan=False)
    except (ValueError, RecursionError):
        return text
    return found


def query_of(arguments: object, most: int) -> str:
    """What was asked: a lone argument by itself, several with their names, `name=value; …`."""
    if isinstance(arguments, dict):
        shown = [(str(name), value if isinstance(value, str) else _json(value)) for name, value in arguments.items()]
        if len(shown) == 1:
            return line(shown[0][1], most)
        return line("; ".join(f"{name}={value}" for name, value in shown), most)
    return line("" if arguments is None else arguments if isinstance(arguments, str) else _json(arguments), most)


def lines(text: str, most: int) -> str:
    """A text of at most `most` characters, each of its lines as by `line`, none empty."""
    kept = [flat for each in text.splitlines() if (flat := line(each, most))]
    made = "\n".join(kept)
    return made if len(made) <= most else made[: most - 1] + "…"


def summary_of(text: str, most: int) -> str:
    """The sentences that matter most, in their order, a line each, at most `most` characters together."""
    return lines(extract([text], most, len), most) or lines(text, most)


def sources_of(text: str, most: int) -> tuple[str, ...]:
    """The addresses, then the paths, then the titles that the content names, in its order: search results rank."""
    found: dict[str, list[str]] = {"url": [], "path": [], "title": []}
    for kind, value in exact_values(text):
        if kind in found:
            found[kind].append(line(value, 200))
    for title in _TITLE.finditer(text):
        found["title"].append(line(next(filter(None, title.groups())), 200))
    names = dict.fromkeys(name for kind in found.values() for name in kind if name)
    return tuple(names)[:most]


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
