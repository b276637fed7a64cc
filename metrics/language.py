"""Sentences and words of text, mixed as agents' conversations mix them.

Stems, stop words, names and cues are English and Chinese; words of every language are found, as they are written. A
newline always ends a sentence: what agents read has one thing a line. Everything is linear in the length of the text.
Chinese words come from `rjieba`, imported (0.4 s, once) with the first Chinese text. Word lists are in `data/`.
"""

from __future__ import annotations

import re
import tomllib
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, lru_cache, wraps
from importlib.resources import files
from itertools import islice
from sys import intern
from typing import Any, Literal, TypeVar, cast

Language = Literal["zh", "en"]
LANGUAGES: tuple[Language, ...] = ("zh", "en")


def word_lists(package: str, name: str) -> dict[str, Any]:
    """Return the word lists in `data/<name>.toml` of a package, by their keys."""
    return tomllib.loads((files(package) / f"data/{name}.toml").read_text("utf-8"))


class _Regex:
    """A regular expression that is compiled when it is first used: all together take a quarter of a second."""

    def __init__(self, text: str, flags: int) -> None:
        self._written = text, flags

    def __getattr__(self, name: str) -> Any:
        method = getattr(re.compile(*self._written), name)
        setattr(self, name, method)
        return method


def regex(text: str, flags: int = 0) -> re.Pattern[str]:
    """Return a regular expression that is compiled when it is first used."""
    return cast(re.Pattern[str], _Regex(text, flags))


def either(alternatives: list[str]) -> str:
    """Return the inside of a regular expression that fits any of some alternatives."""
    return "|".join(alternatives)


_LISTS = word_lists(__package__, "language")

HAN = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
"""Han characters, as the inside of a character class of a regular expression."""

_HAN = re.compile(f"[{HAN}]")
_LATIN = re.compile(r"[A-Za-z][^\s\u2e80-\uffff]*")
# Thai, Lao, Burmese, Khmer, kana and Hangul put no spaces between words, or add particles to them.
_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30fa\u30fc-\u30ff\uac00-\ud7af"
_KANA = re.compile("[\u3041-\u3096\u30a1-\u30fa]")  # not the dot and the long dash, which Chinese has as well
_RUNS = f"{HAN}{_UNSPACED}"
_SPACED = rf"\d++(?>(?:[.,:]\d++){{0,8}})(?![^\W{_RUNS}])|[^\W{_RUNS}]+(?>(?:['’][^\W\d{_RUNS}]+)?)"
_PLAIN_WORD = re.compile(_SPACED)  # for text without such runs: it takes half of the time
_WORD = re.compile(rf"(?P<han>[{HAN}]+)|(?P<pairs>[{_UNSPACED}]+)|{_SPACED}")
_JAPANESE_WORD = regex(rf"(?P<pairs>[{_RUNS}]+)|{_SPACED}")
_CLAUSE = re.compile(r"[^，。！？；!?\n]+")
_ANY_RUN = re.compile(f"[{_RUNS}]")
# A set of characters first: the next place of one is found at once.
_END = re.compile(
    r"[.!?。！？；…]"
    r"(?:(?<=[.!?])(?<![.!?]{2})[.!?]*+[\"'”’)\]*_`]{0,4}(?=\s)|(?<=[。！？；…])[。！？；…]*+[”’』」）》\"')]{0,4})"
)
FENCE = re.compile(r"\s*(?:```|~~~)")  # the start of a line that opens or closes a block of code
_CODE = re.compile(r"\t| {4}|[<{}|$>#@]|(?:def|class|import|from|return|if|for|while) .*[:=(]|[\w.]+\(.*\)$|[\w.]+ = ")
_CODE_ENDS = frozenset(";{}[](|\\")
_MARK = re.compile(r"\s*(?:[-*•·>#]+|\(?\d{1,3}[.)、]|\(?[A-Za-z][.)])$")  # the bullet or number of a list item
_INITIAL = re.compile(r"(?:^|[\s(.])[A-Za-z]$")
_ABBREVIATION = re.compile(rf"(?:^|[\s(\"'])(?:{either(_LISTS['abbreviations'])})$", re.IGNORECASE)
_ENDS_TOO = re.compile(rf"(?:{either(_LISTS['closing_abbreviations'])})$", re.IGNORECASE)

STOP_WORDS = frozenset(word for language in LANGUAGES for word in _LISTS["stop_words"][language].split())
"""Words that say nothing about the subject of a text."""
SHORT = 1_000  # characters of the longest text whose words, terms and values are cached


def language_of(text: str) -> Language:
    """Return Chinese if a text has Han characters, and at least as many as words in Latin letters; else English.

    A Chinese sentence with a command or a path in it stays Chinese; an English one that quotes a name stays English.
    """
    if text.isascii():
        return "en"
    han = len(_HAN.findall(text))
    # The Latin word after as many as there are Han characters decides: in a long English text few words are looked at.
    return "zh" if han and next(islice(_LATIN.finditer(text), han, None), None) is None else "en"


_SCRIPTS = {name: regex(f"[{script}]") for name, script in _LISTS["scripts"].items()}
_GRAMMAR = {name: frozenset(words.split()) for name, words in _LISTS["grammar"].items()}
_LATIN_WORD = re.compile(r"[^\W\d_]+")


@lru_cache(1 << 13)
def written_in(text: str) -> str:
    """Return the code of the language of a text, as its script and its words of grammar tell; empty if none does.

    Of texts in Latin letters nothing but words of grammar tells, so that a name or a code has no language.
    """
    words = _LATIN_WORD.findall(text.lower())
    hits = {name: sum(map(grammar.__contains__, words)) for name, grammar in _GRAMMAR.items()}
    best = max(hits, key=lambda name: hits[name])
    if not text.isascii():
        # A foreign letter or name in an English sentence does not make it another language.
        latin = sum(len(word) for word in words if word.isascii()) if hits[best] else 0
        for name, script in _SCRIPTS.items():
            if (letters := len(script.findall(text))) and (name == "zh" or letters >= latin):
                return str(name)
    return best if hits[best] else ""


def unread(languages: Iterable[str]) -> str:
    """Return the language that most of some texts are `written_in` if our rules do not read it; empty if they may.

    Words of grammar can mislead, so that one text in Latin letters is not enough.
    """
    counts = Counter(languages)
    del counts[""]
    code, times = counts.most_common(1)[0] if counts else ("", 0)
    is_known = 2 * times > counts.total() and (times > 1 or code in _SCRIPTS)
    return code if is_known and code not in LANGUAGES else ""


def sentences(text: str) -> list[str]:
    """Return the sentences of a text in order, each stripped, none empty. Lines of code are not split."""
    result: list[str] = []
    fenced = False
    for line in text.splitlines():
        if not line or line.isspace():
            continue
        if FENCE.match(line):
            fenced = not fenced
            continue
        start = 0
        is_code = fenced or _CODE.match(line) or line.rstrip()[-1] in _CODE_ENDS
        for stop in () if is_code else _END.finditer(line):
            if stop.group()[0] != "." or _ends(line, start, stop):
                result.append(line[start : stop.end()].strip())
                start = stop.end()
        if rest := line[start:].strip():
            result.append(rest)
    return result


def parts(sentence: str, most: int, marks: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield a sentence whole, or in parts of at most so many characters that are not empty.

    A part ends behind the last mark in its second half: one of the first group of `marks` of which there is any.
    """
    start = 0
    while len(sentence) - start > most:
        low, stop = start + most // 2, start + most
        places = ([(sentence.rfind(mark, low, stop), len(mark)) for mark in group] for group in marks)
        ends = (max(at + size for at, size in group if at >= 0) for group in places if max(group)[0] >= 0)
        stop = next(ends, stop)
        if part := sentence[start:stop].strip():
            yield part
        start = stop
    if rest := sentence[start:].strip():
        yield rest


Read = TypeVar("Read")


def of_short_texts(size: int) -> Callable[[Callable[[str], Read]], Callable[[str], Read]]:
    """Return a decorator that caches what is read of texts up to SHORT characters."""

    def decorate(read: Callable[[str], Read]) -> Callable[[str], Read]:
        cached = lru_cache(size)(read)

        @wraps(read)
        def of(text: str) -> Read:
            return cached(text) if len(text) <= SHORT else read(text)

        return of

    return decorate


# Strategies, probes and readers ask for the words of the same sentences: six of seven times they are known. Each word
# is one object, however many texts have it: the cache takes a fifth of the memory.
@of_short_texts(1 << 15)
def words(text: str) -> tuple[str, ...]:
    """Return the words in order, in lower case and without punctuation. Chinese is segmented.

    `user_id`, `3.5`, `45,000` and `don't` are one word each, `ABC-123` two. Of Japanese, Korean and others that write
    words together, each pair of characters is one, so that 거북이 is found in 거북이를.
    """
    return tuple(map(intern, _words(text)))


def _words(text: str) -> list[str]:
    """Return the words of a text. To make each word one object, where they are cached, takes a third of the time."""
    if text.isascii() or _ANY_RUN.search(text) is None:
        return _PLAIN_WORD.findall(text.lower())
    result: list[str] = []
    kana = _share_of_kana(text)
    for clause in _CLAUSE.findall(text.lower()) if kana else [text.lower()]:
        # One kana makes no Chinese text Japanese, and no clause without kana makes a text of kana Chinese.
        is_japanese = kana > 1 / 2 or (kana and _share_of_kana(clause) >= 1 / 5)
        for match in (_JAPANESE_WORD if is_japanese else _WORD).finditer(clause):
            run = match[0]
            if match.lastgroup == "pairs":
                result += [run[at : at + 2] for at in range(max(1, len(run) - 1))]
            else:
                result += cut(run) if match.lastgroup else [run]
    return result


def reads_by_line(text: str) -> bool:
    """Return whether a text may be split into words line by line: not with kana, which are counted over all of it."""
    return _KANA.search(text) is None


def _share_of_kana(text: str) -> float:
    kana = len(_KANA.findall(text))
    return kana and kana / (kana + len(_HAN.findall(text)))


@of_short_texts(1 << 13)
def terms(text: str) -> tuple[str, ...]:
    """Return the words of a text in order without stop words, English ones cut to their stems.

    Questions and texts are matched by them everywhere, so `booked` finds `bookings`, and `and the other one?` nothing.
    """
    return tuple(filter(None, map(_term, _words(text))))


# Words recur: with the cache stemming takes a fifth of the time.
@lru_cache(1 << 16)
def _term(word: str) -> str:
    """Return the stem of a word; empty for a stop word."""
    return "" if word in STOP_WORDS else stem(word)


def stem(word: str) -> str:
    """Return the stem of an English word in lower case; any other word as it is."""
    return stemmer().stemWord(word) if word.isascii() else word


@cache
def stemmer() -> Any:
    """Return the stemmer of English words in lower case."""
    import Stemmer  # lazy: what compares no texts never stems

    return Stemmer.Stemmer("english")


def cut(text: str) -> list[str]:
    """Return the words of Chinese text."""
    import rjieba

    return list(rjieba.cut(text))


def _ends(line: str, start: int, stop: re.Match[str]) -> bool:
    """Return whether a full stop ends the sentence begun at `start`, not an abbreviation, initial or list number."""
    at = stop.start()
    if stop.end() - at > 1:
        return True
    if at - start < 8 and _MARK.match(line[start : at + 1]):
        return False
    before = line[max(start, at - 16) : at]
    capital = line[at + 1 : at + 40].lstrip()[:1].isupper()
    if _ABBREVIATION.search(before):
        return capital and bool(_ENDS_TOO.search(before))
    # J. Smith goes on. "So did I. Then …" does not: the pronoun is no initial.
    return not (capital and _INITIAL.search(before)) or before.endswith(" I")


_UPPER, _LOWER = "A-ZÀ-ÖØ-ÞĀ-Ž", "a-zß-öø-ÿā-ž"
_REST = rf"(?>(?:[{_UPPER}{_LOWER}]|['’](?=[{_UPPER}{_LOWER}]))*)(?>(?:-[{_UPPER}][{_LOWER}]++)*)"
_TITLE = r"(?:(?<=\b[A-Z])|(?<=\b(?:Mr|Ms|Dr))|(?<=\bMrs)|(?<=\bProf))"
_JOIN = rf"(?:\ (?:(?:of|de|la|van|von|der|da|di|del|bin|the|&)\ ){{0,2}}|{_TITLE}\.\ )"
# A set of characters first, as in `_END`.
_RUN = re.compile(rf"[{_UPPER}](?<![A-Za-z0-9_@./#$'’-].){_REST}(?>(?:{_JOIN}[{_UPPER}]{_REST})*)")
_NO_END = re.compile(r"[A-Za-z0-9_(/@]")
_QUOTED = re.compile(
    rf"[《「『“\"](?:(?<!\")([{HAN}\w][^《》「」『』“”\n，。！？,.!?]{{0,38}})[》」』”]"
    r"|(?<=\")([A-Z][^\"\n,.!?:{}=]{1,38})\"(?!\s*:))"
)
_STARTS = re.compile(r"(?:^|[.!?。！？\n\r|>])[\s\"'“”‘’(*_#>\[-]*$")
_HAN_RUN = re.compile(f"[{HAN}·]++")

_COMMON = frozenset(_LISTS["common_words"].split())
_SURNAMES = frozenset("".join(_LISTS["surnames"].split()))
_NOT_NAMES = frozenset(_LISTS["not_names"].split())
_AFTER = frozenset(_LISTS["after_names"])


def is_name(text: str) -> bool:
    """Return whether the whole text is written like a name."""
    return text not in _COMMON and (
        _RUN.fullmatch(text) is not None or (_HAN_RUN.fullmatch(text) is not None and _is_tagged(text))
    )


def names(text: str, taken: Sequence[tuple[int, int]]) -> Iterator[tuple[int, str]]:
    """Yield each name with its place, outside the places that are `taken` (start, stop; in order)."""
    starts = [start for start, _ in taken]

    def free(start: int, stop: int) -> bool:
        before = bisect_right(starts, start) - 1
        if before >= 0 and taken[before][1] > start:
            return False
        return before + 1 >= len(taken) or starts[before + 1] >= stop

    for match in _RUN.finditer(text):
        start, name = _trimmed(text, match)
        if name and free(start, start + len(name)):
            yield start, name
    for match in _QUOTED.finditer(text):
        quoted = match.lastindex or 1
        name = match.group(quoted).strip()
        if name and len(name.split()) <= 6 and free(match.start(quoted), match.end(quoted)):
            yield match.start(quoted), name
    if not text.isascii():
        for run in _HAN_RUN.finditer(text):
            start = run.start()
            for word in cut(run.group()):
                name = word[:-1] if len(word) > 2 and word[-1] in _AFTER else word
                if 2 <= len(name) <= 10 and _is_tagged(name) and free(start, start + len(name)):
                    yield start, name
                start += len(word)


def _trimmed(text: str, match: re.Match[str]) -> tuple[int, str]:
    """Return a run without common words at its ends; empty if it is one word that starts a sentence or is common."""
    start, parts = match.start(), match.group().split(" ")
    while parts and parts[0] in _COMMON:
        start += len(parts.pop(0)) + 1
    if parts and _NO_END.match(text, match.end()):  # the last word goes on: "foo(", "Foo_bar"
        parts.pop()
    while parts and (parts[-1] in _COMMON or not parts[-1][0].isupper()):
        parts.pop()
    if len(parts) == 1 and start == match.start() and (not start or _STARTS.search(text, max(0, start - 12), start)):
        return start, ""
    return start, " ".join(parts) if [len(part) for part in parts] != [1] else ""


@lru_cache(65536)
def _is_tagged(word: str) -> bool:
    """Return whether a word is tagged as a place or an organisation, or as a person and begins with a surname."""
    import rjieba

    tag, *others = (tag for _, tag in rjieba.tag(word))
    if others or word in _NOT_NAMES:
        return False
    return tag in ("ns", "nt", "nrt") or (tag == "nr" and word[0] in _SURNAMES)


_CUES = {
    cue: (re.compile(rf"\b(?:{either(_LISTS[cue]['en'])})\b", re.ASCII), re.compile(either(_LISTS[cue]["zh"])))
    for cue in ("decision", "constraint")
}


def is_decision(sentence: str) -> bool:
    """Return whether the sentence says what was decided."""
    return _says(sentence, "decision")


def is_constraint(sentence: str) -> bool:
    """Return whether the sentence says what must or must not be."""
    return _says(sentence, "constraint")


def _says(sentence: str, cue: str) -> bool:
    english, chinese = _CUES[cue]
    # Lowering the text takes a sixth of the time that a pattern without regard to case does.
    return bool(english.search(sentence.lower()) or (not sentence.isascii() and chinese.search(sentence)))
