"""Values that an agent's answer depends on: numbers, dates, identifiers, paths, addresses of pages, names.

Deterministic patterns, linear in the length of the text (repetitions are possessive or short). Where a piece of text
fits several kinds, the more exact kind gets it: url, date, path, number with its unit, identifier, name; no two values
overlap. An e-mail address is an identifier, so is a bare number of seven digits or more.

Figures, codes, paths and ISO dates are found in any language; names, months and units are English and Chinese.

Not recognised: relative days ("tomorrow", 明天), English number words, single digits without a unit, numbers of list
items, a single capitalised word that starts a sentence, a two-part path of plain words ("and/or"), paths and
identifiers with letters beyond ASCII, Chinese names that `rjieba` has no tag for.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import chain, compress, pairwise
from operator import add
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .language import names, of_short_texts

Kind = Literal["number", "date", "identifier", "path", "url", "name"]


class Value(NamedTuple):
    """A value as it is written in the text."""

    kind: Kind
    text: str


_MONTH = (
    r"(?:Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?|Sept?(?:ember)?|Oct(?:ober)?"
    r"|Nov(?:ember)?|Dec(?:ember)?)"
)
_DAY = r"\d{1,2}(?:st|nd|rd|th)?"
_CLOCK = r"\d{1,2}:\d\d(?::\d\d(?:\.\d{1,9})?)?(?:\ ?[AaPp]\.?[Mm]\b\.?)?"
_ZONE = r"(?:\ ?Z|\ ?[+-]\d\d:?\d\d\b)?"
_N = r"(?:\d{1,2}|[一二三四五六七八九十]{1,3})"
_HOURS = r"(?:上午|下午|晚上|凌晨|中午|早上|傍晚)"
_DATE = rf"""
    (?<![\w.-])\d{{4}}(?P<sep>[-/.])\d{{1,2}}(?P=sep)\d{{1,2}}(?![\d-])(?:[T\ ]{_CLOCK}{_ZONE})?
    |(?<![\w./])\d{{1,2}}/\d{{1,2}}/\d{{2,4}}(?![\w/])
    |(?<!\w){_DAY}\ (?:of\ )?{_MONTH}(?:,?\ \d{{4}})?(?!\w)
    |(?<!\w){_MONTH}\.?\ (?:{_DAY}(?:,?\ \d{{4}})?|\d{{4}})(?!\w)
    |(?<!\w)(?:January|February|March|April|June|July|August|September|October|November|December)(?!\w)
    |(?<!\w)(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day(?!\w)
    |(?:\d{{4}}|[〇零一二三四五六七八九]{{4}})年(?:{_N}月(?:份|{_N}[日号])?)?
    |{_N}月(?:{_N}[日号]|份|底|初|中旬)
    |[上下本]?(?:星期|礼拜|周)[一二三四五六日天]
    |{_HOURS}?{_N}点(?:半|整|钟|一刻|{_N}分?)
    |{_HOURS}{_N}点
    |(?<![\w.:]){_CLOCK}(?![\w:])
    |(?<![\w.])\d{{1,2}}\ ?[AaPp]\.?[Mm]\b\.?
"""
_EXTENSION = (
    "py|pyi|ipynb|js|mjs|jsx|ts|tsx|json|jsonl|ya?ml|toml|ini|cfg|conf|env|md|rst|txt|csv|tsv|log|html?|css|scss|xml|svg"
    "|png|jpe?g|gif|webp|pdf|docx?|xlsx?|pptx?|zip|tar|gz|tgz|zst|whl|sh|bash|bat|ps1|c|h|cc|cpp|hpp|cs|go|rs|rb|java|kt"
    "|swift|php|lua|sql|db|sqlite|parquet|proto|lock|diff|patch|tex|vue|exe|dll|so|mp3|mp4|wav"
)
_PATH = rf"""
    (?<![\w.:/<~@+%-])(?:~|\.{{1,2}})?/[\w.@+%~][\w.@+%~/-]*+
    |(?<!\w)[A-Za-z]:\\[\w.@+-][\w.@+\\-]*+
    |(?<![\w./@:+-])[\w.@+-]++/[\w.@+%~-][\w.@+%~/-]*+
    |(?<![\w./@:+-])\w[\w-]*+(?>(?:\.(?!(?:{_EXTENSION})(?!\w|\.\w))[\w-]++)*)\.(?:{_EXTENSION})(?![\w/(])
"""
_UNIT = r"""
    %|‰|°[CF]?|[kKMGTx](?!\w)
    |[\ -]?(?:percent|dollars?|euros?|pounds?|yuan|USD|EUR|GBP|CNY|RMB|JPY|ms|s|seconds?|secs?|minutes?|mins?
        |hours?|hrs?|h|days?|nights?|weeks?|months?|years?|yrs?|[kKMGT]i?[Bb]|bytes?|tokens?|[kcm]?m|km/h|mph|miles?|feet|ft|inch(?:es)?
        |[km]?g|lbs?|oz|kWh?|[kMG]?Hz|million|billion|thousand|people|users?|items?|bags?|passengers?|points?|times|pages?
        |lines?|rows?|stars?)(?!\w)
    |\ ?(?:[千百万亿]{1,2}(?:美元|欧元|元|块钱?|人)?|元|块钱?|美元|欧元|日元|港币|人民币|天|日|晚|小时|个月|分钟|分|秒
        |年|岁|周|次|个|人|名|位|件|台|条|页|行|层|楼|号|公里|千米|厘米|毫米|平方公里|平方米|平米|米|公斤|千克|克|斤|吨|升|度|折|倍|集|期|届
        |章|张|本|部)
"""
_CURRENCY = r"(?:(?:US|HK)?[$€£¥￥]\ ?|(?:RMB|USD|EUR|GBP|CNY)\ )"
_NUMBER = rf"""
    (?<![\w.])[-+]?{_CURRENCY}?\d++(?>(?:,\d{{3}}(?!\d)){{0,6}})(?>(?:\.\d++)?)(?:{_UNIT})?(?![A-Za-z0-9_]|\.\d)
"""
_ZH_NUMBER = r"""
    第?[〇零一二两三四五六七八九十百千万亿]{1,20}(?:点[零一二三四五六七八九]{1,8})?
    (?:元|块钱|美元|欧元|小时|个月|分钟|岁|公里|公斤|平方公里|平方米|天|年|周|次|人|名|位|件|台|米|斤|吨|届|期|集|章)
    |百分之[零一二三四五六七八九十百]{1,6}(?:点[零一二三四五六七八九]{1,4})?
"""
# What may begin a date or an amount: "May 3", "USD 20". Passed over as plain, it would be lost.
_NOT_PLAIN = r"Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec|Mon|Tue|Wed|Thu|Fri|Sat|Sun|(?:RMB|USD|EUR|GBP|CNY)\ "
# The characters that a value may begin with; none of the alternatives is tried at any other.
_BEGINS = r"A-Za-z0-9_~./@+\-\#$€£¥￥〇零一二两三四五六七八九十百千万亿上下本星礼周早中晚凌傍第"
_WORD = rf"(?:[a-z]++|(?=[A-Z])(?!{_NOT_PLAIN})[A-Z](?:[a-z]++|[A-Z]*+))"
# Words, with up to three hyphens, and marks that begin no value: passed over at once, for speed alone. What follows a
# word must not make a path, an address or a name of code of it.
_PLAIN = rf"""
    (?>(?:[^{_BEGINS}]++
    |(?<![-+./\#])[-+./\#]++(?=[^{_BEGINS}%]|\Z)
    |{_WORD}(?:-{_WORD}){{0,3}}+
        (?=[^{_BEGINS}:(]|:(?![:/\\])|\((?!\))|(?<!www)[-+.]++(?:[^{_BEGINS}]|\Z)|\Z))+)
"""
# The order of the alternatives is the order of the kinds: the first that fits takes the text, and no other sees it.
_PATTERN = re.compile(
    rf"""(?:{_PLAIN})?+(?:(?P<url>(?:https?|ftp|wss?|s3|file)://[^\s<>"'`\\\u3000-\uffef]++|(?<![\w.])www\.[\w.-]++(?:/[\w./?&=%\#~+-]*+)?)
    |(?P<mail>(?<![\w.+-])[\w.+-]++@[A-Za-z0-9-]++(?>(?:\.[A-Za-z0-9-]++)+))
    |(?P<date>(?=[\dJFMASONDTW〇零一二三四五六七八九十上下本星礼周早中晚凌傍])(?:{_DATE}))
    |(?P<path>{_PATH})
    |(?P<uuid>(?<![\w-])[0-9a-fA-F]{{8}}-(?:[0-9a-fA-F]{{4}}-){{3}}[0-9a-fA-F]{{12}}(?![\w-]))
    |(?P<code>\#[\w-]*?\d[\w-]*+|(?<![\w.-])(?:\d++(?>(?:-\d++){{2,}})|\d{{2,8}}-\d{{4,8}}|\d++(?>(?:\.\d++){{2,}}))(?![\w-]))
    |(?P<number>(?=[-+\d$€£¥￥UHREGC])(?:{_NUMBER}))
    |(?P<hanzi>(?=[第〇零一二两三四五六七八九十百千万亿])(?:{_ZH_NUMBER}))
    |(?P<token>(?<!\w)[A-Za-z0-9_]\w*+(?>(?:(?:[-.]|::)\w++)*)(?:\(\))?)
    |.|\Z)
    """,
    re.VERBOSE | re.ASCII | re.DOTALL,
)
_DIGIT, _LETTER, _CAMEL = re.compile(r"\d"), re.compile(r"[A-Za-z]"), re.compile(r"[a-z][A-Z]")
_PLAIN_PATH = re.compile(r"[A-Za-z@+%~/-]+")
# 3rd, 1990s and 2D have a digit and a letter and are no identifiers.
_ORDINAL = re.compile(r"\d+(?:st|nd|rd|th|s|D)$", re.IGNORECASE)
_FIGURE = re.compile(r"\d[\d,]*(?:\.\d+)?")
_BARE = re.compile(r"[-+]?\d+$")


# Strategies and bounds read the same sentences: five of seven times their values are known.
@of_short_texts(1 << 15)
def values(text: str) -> tuple[Value, ...]:
    """Return the different values of a text, in the order they first occur."""
    placed = list(_exact(text))
    spans = [(start, start + len(value.text)) for start, value in placed]
    if named := [(start, Value("name", name)) for start, name in names(text, spans)]:
        placed = sorted(placed + named, key=lambda pair: pair[0])
    return tuple(dict.fromkeys(value for _, value in placed))


def exact_values(text: str) -> tuple[Value, ...]:
    """Return the values of a text without the names, which take half of the time to find."""
    return tuple(dict.fromkeys(value for _, value in _exact(text)))


def without_values(text: str) -> str:
    """Return a text with blanks in place of its dates, identifiers, paths and addresses: words and numbers are left."""
    parts, end = [], 0
    for start, value in _exact(text):
        if value.kind != "number":
            parts += [text[end:start], " " * len(value.text)]
            end = start + len(value.text)
    return "".join([*parts, text[end:]])


def spellings(value: Value) -> tuple[str, ...]:
    """Return the ways to write a value: a number has no currency and unit, and stands with and without its commas."""
    figure = _FIGURE.search(value.text) if value.kind == "number" else None
    return tuple(dict.fromkeys([figure.group(), figure.group().replace(",", "")])) if figure else (value.text,)


def _exact(text: str) -> Iterator[tuple[int, Value]]:
    """Yield each value that is not a name, with its place. None goes over the end of a line."""
    start = 0
    for line in text.split("\n"):
        bare = line.lstrip(" \t")
        at = start + len(line) - len(bare)
        for place, value in _of_line(bare.rstrip(" \t")):
            yield at + place, value
        start += len(line) + 1


# The lines of files and logs recur, within a message and among them; a sentence is mostly one of them.
@of_short_texts(1 << 16)
def _of_line(line: str) -> tuple[tuple[int, Value], ...]:
    """Return each value of a line that is not a name, with its place."""
    placed = []
    for match in _PATTERN.finditer(line):
        if (group := match.lastgroup) and (found := _checked(group, match[group])) is not None:
            start, value = match.start(group) + found[0], found[1]
            if group != "number" or not _is_item(line, start, value.text):
                placed.append((start, value))
    return tuple(placed)


# Names of code and figures recur: three of four are known.
@lru_cache(1 << 15)
def _checked(group: str, text: str) -> tuple[int, Value] | None:
    """Return the value of a match, if it is one on a closer look, and how many blanks are before it."""
    kind: Kind = "identifier"
    stripped = text
    if group == "token":
        if not _is_identifier(text):
            return None
    elif group == "number":
        stripped = text.strip()
        if _BARE.match(stripped):
            if len(stripped) == 1:
                return None
            kind = "identifier" if len(stripped) >= 7 and stripped[0] not in "+-" else "number"
        else:
            kind = "number"
    elif group == "hanzi":
        if len(text) == 2 and text[1] not in "元岁米斤吨":
            return None
        kind = "number"
    elif group == "path":
        kind, stripped = "path", text.rstrip(".,-%+@")
        if not _is_path(stripped):
            return None
    elif group == "url":
        kind, stripped = "url", text.rstrip(".,;:!?)]}*_")
    elif group == "date":
        kind = "date"
    return text.index(stripped), Value(kind, stripped)


def _is_item(line: str, start: int, number: str) -> bool:
    """Return whether a number is that of a list item: `1.`, `2)` or `3、` with nothing before it but blanks, `(`, `*`.

    Looking back a limited way keeps the cost linear where one line is the whole text.
    """
    if len(number) > 2 or not _BARE.match(number):
        return False
    after = line[start + len(number) : start + len(number) + 1]
    return after in (".", ")", "、") and not line[max(0, start - 80) : start].strip(" \t(*")


def _is_identifier(text: str) -> bool:
    """Return whether a text has a digit and a letter, an underscore, a hump, `()`, `::`, or dots between long parts."""
    if "_" in text.strip("_") or text.endswith("()") or "::" in text:
        return True
    if len(text) < 3 or _ORDINAL.match(text):
        return False
    if (_DIGIT.search(text) and _LETTER.search(text)) or _CAMEL.search(text):
        return True
    return "." in text and all(len(part) > 1 for part in text.split("."))


def _is_path(text: str) -> bool:
    """Return whether a text has a letter and, with one slash between two parts, a digit, a dot or an underscore too."""
    if not _LETTER.search(text) or len(text) < 3:
        return False
    parts = text.split("/")
    return len(parts) != 2 or parts[0] in ("", "~", ".", "..") or _PLAIN_PATH.fullmatch(text) is None


Ints = NDArray[np.int64]
Spellings = tuple[str, ...]  # ways to write one value

# Translates text to be split into runs of ASCII letters, digits and underscores.
_ATOMS = bytes(at if at < 128 and (chr(at).isalnum() or chr(at) == "_") else 32 for at in range(256))
_FOREIGN = re.compile(r"[^\x00-\x7f]+")
_GOES_ON = re.compile(r"\.\d|,\d{3}(?!\d)")
_DATE_OCCURRENCES = re.compile(r"\d{4}-\d\d-\d\d$", re.ASCII)
_DATE_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d", re.ASCII)
_THREE = re.compile(r"\d{3}(?!\d)")


def occurs(value: str, text: str) -> bool:
    """Return whether the value stands somewhere in the text as a whole."""
    at = text.find(value)
    while at >= 0 and not _is_whole(text, at, at + len(value)):
        at = text.find(value, at + 1)
    return at >= 0


def finder(values: Sequence[Spellings], read: Callable[[str], str] = str) -> Callable[[str], set[int]]:
    """Return a function that tells which values a text has a spelling of once it is `read`, by their numbers.

    Where there are more than _FEW spellings, a text is searched for one only if it has two of its runs of ASCII letters
    and digits one after the other (the last run of a date, which a time may follow, is none of them), or its only run;
    or two characters of a spelling without such runs. Those that the fewest spellings have are looked up. So the cost
    is one pass over the text, plus the hits.
    """
    pairs = [(number, spelling) for number, spellings in enumerate(values) for spelling in spellings]
    if len(pairs) <= _FEW:
        parts = [(pair, max(pair[1].split(), key=len, default="")) for pair in pairs]
        return lambda text: _having([pair for pair, part in parts if part in text], text, read)
    wanted = [(number, spelling, _grams(spelling)) for number, spelling in pairs]
    often = Counter(gram for _, _, grams in wanted for gram in grams)
    having: dict[Gram, list[tuple[int, str]]] = defaultdict(list)
    for number, spelling, grams in wanted:
        having[min(grams, key=lambda gram: (often[gram], gram))].append((number, spelling))
    kinds = {kind: frozenset(gram for gram in having if isinstance(gram, kind)) for kind in (bytes, tuple, str)}
    first = frozenset(gram[0] for gram in kinds[tuple])
    either = kinds[bytes] | first

    def find(text: str) -> set[int]:
        atoms = _atoms(text)
        hits = either.intersection(atoms)
        keys = [*kinds[bytes] & hits]
        if not first.isdisjoint(hits):
            keys += kinds[tuple].intersection(compress(pairwise(atoms), map(first.__contains__, atoms)))
        if kinds[str]:
            keys += kinds[str].intersection(_characters(text))
        return _having(list(chain.from_iterable(map(having.__getitem__, keys))), text, read)

    return find


_FEW = 32  # spellings up to which it is faster to search for each of them


def _having(pairs: Sequence[tuple[int, str]], text: str, read: Callable[[str], str]) -> set[int]:
    text = read(text) if pairs else text
    return {number for number, spelling in pairs if occurs(spelling, text)}


def places(find: Callable[[str], Iterable[int]], texts: Iterable[str]) -> tuple[Ints, Ints]:
    """Return each pair (value, text) where the text has the value, by their numbers and in order."""
    pairs = np.array([number << 32 | at for at, text in enumerate(texts) for number in find(text)], np.int64)
    pairs.sort()
    return pairs >> 32, pairs & (1 << 32) - 1


Gram = bytes | str | tuple[bytes, bytes]


def _grams(spelling: str) -> list[Any]:
    """Return pairs of runs, or else of characters, that a text with the spelling has, or the only ones."""
    atoms = _atoms(spelling)
    if not atoms:
        characters = _characters(spelling)
        return [pair for pair in characters if len(pair) == 2] or characters
    # 2024-05-01 has the runs 2024, 05 and 01, but 2024-05-01T10:00 has 2024, 05 and 01T10: without its last run the
    # date is looked for there as well.
    atoms = atoms[:-1] if _DATE_OCCURRENCES.search(spelling) else atoms
    return [*pairwise(atoms)] or atoms


class Lines:
    """Lines of texts, each read once: a memory or a summary written anew has most lines of the one before it."""

    def __init__(self, texts: Iterable[str] = ()) -> None:
        self.texts = list(texts)
        numbers: dict[str, int] = {}
        lines = [[numbers.setdefault(line, len(numbers)) for line in text.split("\n")] for text in self.texts]
        self.different = list(numbers)
        """The different lines."""
        self.line: Ints = np.fromiter(chain.from_iterable(lines), np.int64)
        """The lines of all texts, by their numbers among the different ones."""
        self.text: Ints = np.repeat(np.arange(len(lines)), list(map(len, lines)))
        """The text that each of them is in."""

    def places(self, find: Callable[[str], Iterable[int]], values: Sequence[Spellings]) -> tuple[Ints, Ints]:
        """Return every value with a text or a line that has it. The lines are numbered behind the texts."""
        value, line = places(find, self.different)
        # A value that has a line end, an argument of some lines, is in no single line.
        long = [at for at, spellings in enumerate(values) if any("\n" in text for text in spellings)]
        among, text = places(finder([values[at] for at in long]), self.texts) if long else (line[:0], line[:0])
        return np.append(value, np.array(long, np.int64)[among]), np.append(line + len(self.texts), text)


NOTHING = Lines()


def _characters(text: str) -> list[str]:
    """Return the characters beyond ASCII of a text and each two in a row; and nothing, which every text has."""
    runs = () if text.isascii() else _FOREIGN.findall(text)
    return [*chain.from_iterable((*run, *map(add, run, run[1:])) for run in runs), ""]


def _atoms(text: str) -> list[bytes]:
    # Half surrogates, which cannot be encoded, become `?`. All bytes beyond ASCII end a run, as do marks.
    return text.encode("utf-8", "replace").translate(_ATOMS).split()


_GAPS = frozenset(["", *" \n\t\"'`()[]{}<>:;=/-*"])  # what a value stands between mostly, and is no part of any


def _is_whole(text: str, start: int, stop: int) -> bool:
    if text[max(start - 1, 0) : start] in _GAPS and text[stop : stop + 1] in _GAPS:  # most are: twice as fast
        return True
    first, last = text[start], text[stop - 1]
    if start and _is_word(first):
        before = text[start - 1]
        if _is_word(before):
            return False
        # A part of a longer number: 5 in 1.5, or 100 in 1,100. Not 14 in 3,14, as groups of thousands have three
        # digits.
        longer = first.isdigit() and before in ".," and start > 1 and text[start - 2].isdigit()
        if longer and (before == "." or _THREE.match(text, start)):
            return False
    if stop < len(text) and _is_word(last):
        if _is_word(text[stop]):
            # Only a date may run on: the T before the time of day is a letter.
            return stop - start >= 10 and _DATE_TIME.match(text, stop - 10) is not None
        return not (last.isdigit() and _GOES_ON.match(text, stop))
    return True


def _is_word(character: str) -> bool:
    """Return whether a character is a letter, digit or underscore of a script that puts spaces between words."""
    # From there on: Chinese, Japanese and Korean. 张三 in 叫张三吧 stands as a whole, though letters are on both sides.
    return character < "\u2e80" and (character.isalnum() or character == "_")
