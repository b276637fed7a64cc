"""The entities of a text by rules, offline: values, names and their parts, Chinese nouns, and content words.

Values and names are those of `metrics.values` (numbers, dates, identifiers, paths, pages, names of people and places);
a number stands without unit and commas, a name also for each of its parts. Chinese words that `rjieba` tags as nouns
count. With `with_words` the content words of the text do too, as stems: what noun phrases are to a parser.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache

from ....metrics.language import HAN
from ....metrics.values import Value, spellings, values
from .terms import terms

_RUN = re.compile(f"[{HAN}]+")


def entities(text: str, with_words: bool = True) -> tuple[str, ...]:
    """The different entities of a text, as they are compared: folded, in the order they first occur."""
    found = [entity for value in values(text) for entity in _of(value)]
    found += _nouns(text)
    if with_words:
        found += terms(text)
    return tuple(dict.fromkeys(found))


def _of(value: Value) -> Iterator[str]:
    """How a value is compared."""
    if value.kind == "number":
        yield spellings(value)[-1]
        return
    yield value.text.casefold()
    if value.kind == "name":
        yield from (part for part in value.text.casefold().split() if len(part) > 2)


def _nouns(text: str) -> Iterator[str]:
    if text.isascii():
        return
    for run in _RUN.findall(text):
        yield from (word for word, tag in _tagger()(run) if len(word) > 1 and tag.startswith("n"))


@cache
def _tagger() -> Callable[[str], list[tuple[str, str]]]:
    import rjieba

    tag: Callable[[str], list[tuple[str, str]]] = rjieba.tag
    return tag
