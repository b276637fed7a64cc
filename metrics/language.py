"""Sentences and words of English and Chinese text, mixed as agents' conversations mix them.

A newline always ends a sentence: what agents read (logs, code, tables, lists) has one thing a line, and prose that
wraps its lines is rare in it. Linear in the length of the text. Chinese words come from `rjieba`, whose dictionary is
in its wheel; it is imported (0.4 s, once) when the first Chinese text is asked for.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from itertools import islice
from typing import Literal

Language = Literal["zh", "en"]

HAN = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
"""The Han characters, as the inside of a character class."""

_HAN = re.compile(f"[{HAN}]")
_LATIN = re.compile(r"[A-Za-z][^\s\u2e80-\uffff]*")
_WORD = re.compile(rf"([{HAN}]+)|\d++(?>(?:[.,:]\d++){{0,8}})(?![^\W{HAN}])|[^\W{HAN}]+(?>(?:['’][^\W\d{HAN}]+)?)")
_ASCII_WORD = re.compile(_WORD.pattern.replace(f"([{HAN}]+)|", "", 1))
"""The same for text that has no Chinese. What has no group is found in half of the time."""
_END = re.compile(r"(?<![.!?])[.!?]++[\"'”’)\]*_`]{0,4}(?=\s)|[。！？；…]++[”’』」）》\"')]{0,4}")
_FENCE = re.compile(r"\s*(?:```|~~~)")
_CODE = re.compile(r"\t| {4}|[<{}|$>#@]|(?:def|class|import|from|return|if|for|while) .*[:=(]|[\w.]+\(.*\)$|[\w.]+ = ")
_CODE_ENDS = frozenset(";{}[](|\\")
_MARK = re.compile(r"\s*(?:[-*•·>#]+|\(?\d{1,3}[.)、]|\(?[A-Za-z][.)])$")
"""What stands before a list item, when nothing else does."""
_INITIAL = re.compile(r"(?:^|[\s(.])[A-Za-z]$")
_ABBREVIATION = re.compile(
    r"(?:^|[\s(\"'])(?:mr|mrs|ms|dr|prof|sr|jr|st|mt|no|nos|vs|etc|inc|ltd|co|corp|dept|fig|figs|eq|sec|ch|vol|ed|eds"
    r"|pp|approx|est|min|max|al|cf|e\.g|i\.e|a\.m|p\.m|u\.s|u\.k|ph\.d|jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec)$",
    re.IGNORECASE,
)
_ENDS_TOO = re.compile(r"(?:etc|inc|ltd|co|corp|a\.m|p\.m|u\.s|u\.k|al|no|jr|sr)$", re.IGNORECASE)
"""Abbreviations that may end a sentence as well: they do if a capital follows."""


_STOP_WORDS = """
    a an the and or but if so as at by for from in into of off on onto out over to up with about above after again
    all am any are be because been before being below between both can could did do does doing done down during each
    few get got had has have having he her here hers him his how i i'd i'll i'm i've is it its it's just let let's me
    more most my now no nor not ok okay only other our ours own please same she should some such than thanks that
    that's the their them then there there's these they this those through too under until us user very was we were
    what when where which while who whom why will would yes you your yours assistant 的 了 是 在 我 你 您 他 她 它 们
    我们 你们 他们 这 那 这个 那个 有 和 与 及 或 就 也 都 还 又 很 吗 呢 吧 啊 把 被 给 对 从 到 向 为 以 于 上 下
    中 里 个 一个 一 请 好 好的 可以 会 要 能 不 没 没有 什么 怎么 如何 如果 但 但是 而 而且 因为 所以 然后 并 用户
    助手 说 让 帮 一下
"""
STOP_WORDS = frozenset(_STOP_WORDS.split())
"""Words that say nothing of what a text is about."""


def language_of(text: str) -> Language:
    """Chinese if it has at least as many Han characters as words in Latin letters, and any at all; else English.

    So a Chinese sentence with a command or a path in it stays Chinese, and an English one that quotes a name English.
    """
    if text.isascii():
        return "en"
    han = len(_HAN.findall(text))
    return "zh" if han and next(islice(_LATIN.finditer(text), han, None), None) is None else "en"


def sentences(text: str) -> list[str]:
    """The sentences of a text in order, each stripped, none empty. Lines of code are not split."""
    made: list[str] = []
    fenced = False
    for line in text.splitlines():
        if not line or line.isspace():
            continue
        if _FENCE.match(line):
            fenced = not fenced
            continue
        if fenced or _CODE.match(line) or line.rstrip()[-1] in _CODE_ENDS:
            made.append(line.strip())
        else:
            _split(line, made)
    return made


def words(text: str) -> list[str]:
    """The words in order, lower case, without punctuation. Chinese is segmented; a number with its separators is one.

    `user_id` is one word, `ABC-123` two, `3.5` and `45,000` one each, `don't` one.
    """
    if text.isascii():
        return _ASCII_WORD.findall(text.lower())
    made: list[str] = []
    for found in _WORD.finditer(text.lower()):
        if found.lastindex:
            made += cutter()(found[0])
        else:
            made.append(found[0])
    return made


@cache
def cutter() -> Callable[[str], list[str]]:
    """The function that segments Chinese."""
    import rjieba

    cut: Callable[[str], list[str]] = rjieba.cut
    return cut


def _split(line: str, made: list[str]) -> None:
    """Add the sentences of one line."""
    start = 0
    for found in _END.finditer(line):
        if found.group()[0] == "." and not _ends(line, start, found):
            continue
        made.append(line[start : found.end()].strip())
        start = found.end()
    rest = line[start:].strip()
    if rest:
        made.append(rest)


def _ends(line: str, start: int, stop: re.Match[str]) -> bool:
    """Whether a full stop ends the sentence begun at `start`: not after an abbreviation, initial or list number."""
    at = stop.start()
    if stop.end() - at > 1:
        return True
    if at - start < 8 and _MARK.match(line[start : at + 1]):
        return False
    before = line[max(start, at - 16) : at]
    capital = line[at + 1 : at + 40].lstrip()[:1].isupper()
    if _ABBREVIATION.search(before):
        return capital and bool(_ENDS_TOO.search(before))
    return not (capital and _INITIAL.search(before)) or before.endswith(" I")
