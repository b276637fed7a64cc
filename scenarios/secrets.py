"""Secrets hidden in whatever leaves the program: those of this machine by their values, all others by their looks.

Values are those of variables of the environment that are named like keys (`OPENAI_API_KEY`, `AWS_SECRET_ACCESS_KEY`,
headers), the user and password of any address there, and what `hide` was told. Each is found in plain, quoted for an
address or a shell, escaped for JSON, HTML or Python, in hex, and in base64, also within a longer text such as a header
`Basic`. Looks are the patterns of `data/secrets.toml`.
"""

from __future__ import annotations

import base64
import html
import json
import os
import re
import shlex
from collections.abc import Iterable, Iterator
from functools import cache, lru_cache
from typing import NamedTuple
from urllib.parse import quote, quote_plus, unquote, urlsplit

from .files import shipped

MASK = "***"
SHORTEST = 8  # characters of a value that is hidden wherever it stands; a shorter one is a word that texts may have
_SHORTEST_PASSWORD = 4
_NAMED = re.compile(
    r"(API_?KEY|KEYS?|TOKENS?|SECRETS?|PASSWORDS?|PASSWD|PASSPHRASE|CREDENTIALS?|COOKIE|AUTH|AUTHORIZATION|HEADERS"
    r"|_PAT|_PWD)(_|$)"
)
# A scheme has an end: without one, a long word would be looked through from each of its letters.
_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]{0,30}://[^\s/@]+@\S+", re.IGNORECASE)
_given: set[str] = set()


class Pattern(NamedTuple):
    """The looks of one kind of secret."""

    name: str
    needles: list[str]
    regex: re.Pattern[str]
    loose: bool  # it also hides what is no secret: for errors and logs alone

    def spans(self, text: str, lower: str) -> Iterator[tuple[int, int]]:
        """Yield where the secrets stand in a text, which is also given in lower case."""
        for needle in self.needles:
            if needle in lower:
                for match in self.regex.finditer(text):
                    yield match.span(match.lastgroup or 0)
                return


@cache
def patterns() -> tuple[Pattern, ...]:
    """Return the patterns, in the order of the file."""
    # ASCII: in a Chinese sentence no space stands before a key.
    return tuple(
        Pattern(entry["name"], entry["needles"], re.compile(entry["regex"], re.ASCII), entry.get("loose", False))
        for entry in shipped("secrets")["pattern"]
    )


def without_secrets(text: str) -> str:
    """Return a message with `***` for every secret: values of this machine, and whatever looks like one."""
    text = without_values(text)
    for pattern in patterns():
        spans = list(pattern.spans(text, text.lower()))
        # From the last on, so that the places of those before it stay right.
        for start, end in reversed(spans):
            text = text[:start] + MASK + text[end:]
    return text


def has_secret(text: str) -> bool:
    """Return whether a text that is to be stored has a secret in it; patterns that are loose do not tell."""
    lower = text.lower()
    looks_so = any(True for pattern in patterns() if not pattern.loose for _ in pattern.spans(text, lower))
    return looks_so or without_values(text) != text


def without_values(text: str) -> str:
    """Return any text with `***` for the secret values of this machine, in all their encodings, and nothing else."""
    forms, any_form = _forms(frozenset(_given) | _environment(tuple(os.environ.items())))
    # A hundred searches for plain words are much faster than one for any of a hundred.
    return any_form.sub(MASK, text) if any(form in text for form in forms) else text


def hide(address: str) -> None:
    """Have the user and the password of an address hidden from now on, in this process."""
    _given.update(_parts("", address))


@lru_cache(maxsize=4)
def _environment(variables: tuple[tuple[str, str], ...]) -> frozenset[str]:
    return frozenset(part for name, value in variables for part in _parts(name, value))


def _parts(name: str, value: str) -> Iterator[str]:
    """Yield what is secret in the value of a variable."""
    if _NAMED.search(name.upper()) and len(value) >= SHORTEST and not os.path.exists(value):
        yield value
        yield from (line for line in value.splitlines() if len(line) >= SHORTEST)
        if "HEADERS" in name.upper():  # NAME=VALUE,NAME=VALUE, as OpenTelemetry writes them
            for header in value.split(","):
                word = unquote(re.split(r"[=:]", header, maxsplit=1)[-1]).split()[-1:]
                yield from (part for part in word if len(part) >= SHORTEST)
    for address in _ADDRESS.findall(value):
        try:
            parts = urlsplit(address)
        except ValueError:
            continue
        for part in (parts.password, f"{parts.username}:{parts.password}" if parts.password else parts.username):
            if part and len(part) >= _SHORTEST_PASSWORD:
                yield part
                yield unquote(part)


@lru_cache(maxsize=8)
def _forms(values: frozenset[str]) -> tuple[tuple[str, ...], re.Pattern[str]]:
    """Return every form of some values, and a pattern that finds them."""
    plain = {form for value in values for form in _encodings(value)}
    coded = {form for value in values for form in _base64(value)}
    # Longer ones first: a value may be the start of another. A character beside the middle of a text in base64
    # holds bits of the value's first and last bytes.
    longest = [sorted(forms, key=lambda form: (-len(form), form)) for forms in (plain, coded)]
    within = (rf"[\w+/-]?{re.escape(form)}[\w+/-]?={{0,2}}" for form in longest[1])
    return (*plain, *coded), re.compile("|".join((*map(re.escape, longest[0]), *within)))


def _encodings(value: str) -> Iterable[str]:
    """Return the forms of a value as texts have it, but for those in base64, which may be a part of a longer one."""
    data = value.encode("utf-8", "replace")
    collapsed = " ".join(value.split())
    once, ascii_only = json.dumps(value, ensure_ascii=False)[1:-1], json.dumps(value)[1:-1]
    quoted = {quote(value, safe=""), quote(value), quote_plus(value)}
    lower = {re.sub("%[0-9A-F]{2}", lambda code: code[0].lower(), form) for form in quoted}
    forms = {value, collapsed, *quoted, *lower, once, ascii_only, once.replace("/", "\\/"), repr(value)[1:-1]}
    forms |= {json.dumps(once, ensure_ascii=False)[1:-1], json.dumps(ascii_only)[1:-1]}
    forms |= {html.escape(value), html.escape(value, quote=False), shlex.quote(value), data.hex(), data.hex().upper()}
    return {form for form in forms if len(form) >= _SHORTEST_PASSWORD}


def _base64(value: str) -> Iterator[str]:
    """Yield the characters that stand in base64 for a value, wherever it begins, without those of its neighbours."""
    data = value.encode("utf-8", "replace")
    for before in range(3):
        coded = base64.b64encode(b"\0" * before + data).decode().rstrip("=")
        # A character holds six bits. Of a value at byte 1 the first that holds none of the byte before is (8 + 5) // 6
        # = 2; the last are cut in the same way. Three places suffice, since three bytes are four characters.
        start = (before * 8 + 5) // 6
        end = (before + len(data)) * 8 // 6
        middle = coded[start:end]
        if len(middle) >= 6:
            yield middle
            yield middle.translate(str.maketrans("+/", "-_"))
