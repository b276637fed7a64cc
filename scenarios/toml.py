"""TOML files of the user, with the line of every key, so that an error can name it."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar, get_args

import msgspec

from .errors import Place, SetupError
from .files import read_file
from .spec import suggestion

T = TypeVar("T")
Keys = tuple[str | int, ...]  # the path to a value: keys of tables, and indices of lists

_PLACE = re.compile(r" \(at (?:line (\d+), column \d+|end of document)\)$")
_DEEP = re.compile(r"""(?<![\w."'-])(?:[\w"'-]++[ \t]*+\.[ \t]*+){64}""")
# Their quoted names hold no bracket and no quote, and each part is taken once: nothing is tried twice.
_NAME = r"""(?:[\w-]++|"[^"]*+"|'[^']*+')"""
_NAMES = rf"\s*+({_NAME}(?:\s*+\.\s*+{_NAME})*+)\s*+"
_HEADER = re.compile(rf"\s*+(\[\[?){_NAMES}\]\]?\s*+(?:#.*)?")
_KEY = re.compile(rf"{_NAMES}=")
_STEP = re.compile(r"\.([\w-]+)|\[(\d+)\]")
_UNKNOWN = re.compile("object contains unknown field `(.*)`")
_MISSING = re.compile("object missing required field `(.*)`")
_OTHER = re.compile("expected `(.*)`, got `(.*)`")
# The names of msgspec's error messages, in TOML's words.
_WORDS = {
    "float": "a number",
    "int": "a whole number",
    "str": "text in quotes",
    "bool": "true or false",
    "object": "a table",
    "array": "a list",
}


def parse(text: str) -> dict[str, Any]:
    """Return the tables of a TOML text. Raises TOMLDecodeError, also for one that is nested too deep."""
    # tomllib takes the square of a key's parts: a minute for 100,000 of them
    if not _DEEP.search(text):
        with suppress(RecursionError):
            return tomllib.loads(text)
    raise tomllib.TOMLDecodeError("nested too deep: flatten it")


class Toml:
    """The tables of a TOML file, and the lines that they stand on."""

    def __init__(self, path: Path, text: str) -> None:
        """Parse the text of the file at `path`. Raises SetupError if it is not TOML."""
        self._path = str(path)
        try:
            self.tables = parse(text)
        except tomllib.TOMLDecodeError as error:
            # tomllib has the line in its message only, and names none for an error at the end of the document
            place = _PLACE.search(str(error))
            what = str(error)[: place.start()] if place else str(error)
            line = int(place[1]) if place and place[1] else text.count("\n") + 1 if place else 0
            raise SetupError(f"{Place(self._path, line)}: not TOML: {what[:1].lower()}{what[1:]}") from None
        self._lines = _lines(text)

    @classmethod
    def read(cls, path: Path) -> Toml:
        """Read and parse a file. Raises SetupError if it cannot be read or is not TOML."""
        try:
            return cls(path, read_file(path).decode("utf-8-sig").replace("\r\n", "\n"))
        except OSError as error:
            raise SetupError(f"{Place(str(path))}: cannot be read: {error.strerror or error}") from None
        except UnicodeDecodeError as error:
            raise SetupError(f"{Place(str(path))}: not UTF-8 ({error.reason}): save the file as UTF-8") from None

    def wrong(self, keys: Keys, what: str, remedy: str = "") -> SetupError:
        """Return an error about a value, with its line."""
        place = Place(self._path, self.line(keys), dotted(keys))
        return SetupError(f"{place}: {what}" + (f" ({remedy})" if remedy else ""))

    def line(self, keys: Keys) -> int:
        """Return the line of a value, or of the nearest table around it; 0 if neither begins a line."""
        return next((self._lines[keys[:size]] for size in range(len(keys), 0, -1) if keys[:size] in self._lines), 0)

    def convert(self, keys: Keys, kind: type[T]) -> T:
        """Return the value at some keys as `kind`. Raises SetupError for the first field that does not fit."""
        value: Any = self.tables
        for key in keys:
            value = value[key]
        try:
            return msgspec.convert(value, kind, strict=True)
        except msgspec.ValidationError as error:
            what, _, path = str(error).partition(" - at `")
            steps = [step[1] or int(step[2]) for step in _STEP.finditer(path)]
            keys, what = (*keys, *steps), what[:1].lower() + what[1:]
            if unknown := _UNKNOWN.fullmatch(what):
                keys = (*keys, unknown[1])
                known = _fields(kind, [step for step in steps if isinstance(step, str)])
                what = f"unknown key{suggestion(unknown[1], known)}"
            elif missing := _MISSING.fullmatch(what):
                what = f"{missing[1]} is missing"
            elif other := _OTHER.fullmatch(what):
                wanted, got = (_WORDS.get(name.removesuffix(" | null"), name) for name in other.groups())
                what = f"must be {wanted}, not {got}"
            raise self.wrong(keys, what.replace("`", "")) from None


def dotted(keys: Keys) -> str:
    """Return keys in TOML's notation: `models."gpt-5.6".tiers[0].above`."""
    plain = re.compile(r"[\w-]+", re.ASCII)
    steps = (f"[{key}]" if isinstance(key, int) else f".{key}" if plain.fullmatch(key) else f'."{key}"' for key in keys)
    return "".join(steps).removeprefix(".")


def _fields(kind: Any, keys: Sequence[str]) -> dict[str, Any]:
    """Return the keys, with their types, of the struct that some keys into one lead to, also within a union or list."""
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        fields = {field.encode_name: field.type for field in msgspec.structs.fields(kind)}
        return _fields(fields.get(keys[0]), keys[1:]) if keys else fields
    return next((fields for part in get_args(kind) if (fields := _fields(part, keys))), {})


def _lines(text: str) -> dict[Keys, int]:
    """Return the line number of every table, and of every key that begins a line."""
    # tomllib gives no positions, so the lines are searched for headers and keys; a wrong guess costs a line number only
    numbers: dict[Keys, int] = {}
    table: Keys = ()
    for number, line in enumerate(text.split("\n"), 1):
        if (header := _HEADER.fullmatch(line)) and (keys := _keys(header[2])):
            table = keys if header[1] == "[" else (*keys, sum(known[:-1] == keys for known in numbers))
            for size in range(1, len(table) + 1):
                numbers.setdefault(table[:size], number)
        elif key := _KEY.match(line):
            numbers.setdefault((*table, *_keys(key[1])), number)
    return numbers


def _keys(dotted: str) -> Keys:
    """Split a dotted key such as `models."a.b".tiers`. Text that is no key gives an empty tuple."""
    try:
        tree = tomllib.loads(f"{dotted} = 0")
    except tomllib.TOMLDecodeError:
        return ()
    keys: list[str] = []
    while isinstance(tree, dict):
        ((key, tree),) = tree.items()
        keys.append(key)
    return tuple(keys)
