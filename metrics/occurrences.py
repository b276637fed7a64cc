"""Where values occur in texts, verbatim and as wholes: many values in many texts, in one pass over the texts.

A value occurs where it stands between word boundaries: "12" is not in "B12", "doe" not in "sara_doe". Between Chinese
characters, which know no boundaries, it occurs wherever it stands. A number is not in a longer one ("50" not in "1.50"
or "50,000"), but a date is in a date with a time ("2024-05-15" in "2024-05-15T10:00").
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Spellings = tuple[str, ...]
"""The ways in which one value may be written."""

_ATOMS = bytes(at if at < 128 and (chr(at).isalnum() or chr(at) == "_") else 32 for at in range(256))
"""What a byte of text becomes when it is cut into runs of ASCII letters, digits and underscores."""
_GOES_ON = re.compile(r"\.\d|,\d{3}(?!\d)")
_DATE = re.compile(r"\d{4}-\d\d-\d\d$", re.ASCII)
_DATE_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d", re.ASCII)
_THREE = re.compile(r"\d{3}(?!\d)")


def occurs(value: str, text: str) -> bool:
    """Whether the value stands somewhere in the text as a whole."""
    at = text.find(value)
    while at >= 0:
        if _is_whole(text, at, at + len(value)):
            return True
        at = text.find(value, at + 1)
    return False


def places(values: Sequence[Spellings], texts: Sequence[str]) -> tuple[Ints, Ints]:
    """Every (value, text), by their numbers, such that the text has a spelling of the value; in order of both.

    A text is looked at for a spelling only if it has all the spelling's runs of ASCII letters and digits as wholes (the
    last of a date aside, where a time may follow), or if it has none. The run that the fewest other spellings have is
    asked for first. So the cost is one pass over the texts, and what is found.
    """
    other: list[tuple[int, str]] = []
    runs: list[tuple[int, str, frozenset[bytes]]] = []
    for number, spellings in enumerate(values):
        for spelling in spellings:
            atoms = _atoms(spelling)
            if atoms:
                runs.append((number, spelling, frozenset(atoms[:-1] if _DATE.search(spelling) else atoms)))
            else:
                other.append((number, spelling))
    often = Counter(atom for _, _, atoms in runs for atom in atoms)
    having: dict[bytes, list[tuple[int, str, frozenset[bytes]]]] = defaultdict(list)
    for entry in runs:
        having[min(entry[2], key=lambda atom: (often[atom], atom))].append(entry)
    keys, found = frozenset(having), set()
    for at, text in enumerate(texts):
        said = _atoms(text)
        asked = keys.intersection(said)
        here = frozenset(said) if asked else keys
        for key in asked:
            for number, spelling, needed in having[key]:
                if needed <= here and occurs(spelling, text):
                    found.add((number, at))
        found.update((number, at) for number, spelling in other if occurs(spelling, text))
    pairs = np.array(sorted(found), np.int64).reshape(-1, 2)
    return pairs[:, 0], pairs[:, 1]


def _atoms(text: str) -> list[bytes]:
    return text.encode("utf-8", "replace").translate(_ATOMS).split()


def _is_whole(text: str, start: int, stop: int) -> bool:
    first, last = text[start], text[stop - 1]
    if start and _is_word(first):
        before = text[start - 1]
        if _is_word(before):
            return False
        longer = first.isdigit() and before in ".," and start > 1 and text[start - 2].isdigit()
        if longer and (before == "." or _THREE.match(text, start)):
            return False
    if stop < len(text) and _is_word(last):
        if _is_word(text[stop]):
            return stop - start >= 10 and _DATE_TIME.match(text, stop - 10) is not None
        return not (last.isdigit() and _GOES_ON.match(text, stop))
    return True


def _is_word(character: str) -> bool:
    """Letters, digits and underscores of scripts that put spaces between words."""
    return character < "\u2e80" and (character.isalnum() or character == "_")
