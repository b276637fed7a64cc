"""What a question asks for: the kind of its answer, the words to look for, what must be there for any answer."""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ..language import STOP_WORDS, language_of, sentences, words
from ..values import values

Wanted = Literal["date", "duration", "money", "number", "identifier", "person", "place", "reason", "yesno", "phrase"]

_EN: tuple[tuple[Wanted, str], ...] = (
    ("reason", r"\bwhy\b|\bfor what reason\b|\bthe reason\b"),
    ("date", r"\bwhen\b|\b(?:which|what) (?:date|day|month|year|time|week)\b|\bhow (?:recently|long ago)\b"),
    ("duration", r"\bhow long\b|\bhow many (?:seconds|minutes|hours|days|weeks|months|years|nights)\b"),
    (
        "money",
        r"\bhow much\b.*\b(?:cost|pay|paid|price|fee|refund|spend|spent|charge|rent|money|budget)"
        r"|\b(?:what|which)\b[^?]*\b(?:price|cost|fee|rent|budget|salary|amount)\b",
    ),
    ("person", r"\bwho(?:m|se)?\b|\bwhich (?:person|colleague|friend|author|customer)\b"),
    (
        "place",
        r"\bwhere\b|\b(?:which|what) (?:city|country|town|place|state|address|street|room|shop|restaurant)\b",
    ),
    (
        "identifier",
        r"\b(?:id|code|hash|commit|reference|tracking|rma|e-?mail|url|path|file|identifier|key)\b"
        r"|\b(?:return|order|ticket|phone|telephone|decision|invoice|flight) (?:number|id)\b"
        r"|\bnumber of (?:the )?(?:order|ticket|return|contact)\b|\bcalled now\b|\brenamed\b|\bnew name\b",
    ),
    (
        "number",
        r"\bhow (?:many|much|old|often|large|big|far|tall|high)\b|\b(?:default|limit|threshold|size|count|value|number"
        r"|total|sum|percentage|rate|port|version|age|score|dropout|sample)\b",
    ),
    (
        "yesno",
        r"^(?:is|are|was|were|do|does|did|has|have|had|can|could|will|would|should|may|might)\b",
    ),
)
"""Tried in this order."""
_ZH: tuple[tuple[Wanted, str], ...] = (
    ("reason", r"为什么|为何|原因|怎么会"),
    ("date", r"什么时候|何时|哪[一]?天|哪[一]?年|哪个?月|几[月号点日]|哪日|日期|时间是|什么时间|星期几|周几"),
    ("duration", r"多久|多长时间|多少(?:秒|分钟|小时|天|周|个月|年)|几(?:秒|分钟|小时|天|周|个月|年)"),
    ("money", r"多少钱|多少元|价格|费用|金额|租金|预算|工资|押金"),
    ("person", r"谁|哪位|什么人|负责人|联系人是"),
    ("place", r"哪里|哪儿|什么地方|何处|在哪|地址|哪个?(?:城市|国家|地方|站点|省|市)"),
    ("identifier", r"编号|参考号|运单号|错误码|代码|单号|电话|号码|邮箱|网址|路径|文件|叫什么|提交号|哈希|决策"),
    ("number", r"多少|几[个次人件台条页行层位名本章张]?|默认值|阈值|上限|下限|数量|版本|比例|百分"),
    ("yesno", r"吗[？?]?$|是否|是不是|有没有|能不能|会不会"),
)  # fmt: skip
_RULES: dict[str, tuple[tuple[Wanted, re.Pattern[str]], ...]] = {
    language: tuple((kind, re.compile(pattern, re.IGNORECASE)) for kind, pattern in rules)
    for language, rules in (("en", _EN), ("zh", _ZH))
}
_FIRST = re.compile(
    r"\b(?:at first|originally|initially|first (?:planned|agreed|set|said)|before the change|previously|used to|earlier"
    r"|original)\b|最初|原来|原先|起初|一开始|以前|之前|原定",
    re.IGNORECASE,
)
_NOW = re.compile(
    r"\b(?:now|currently|current|latest|newest|at present|these days|last agreed|as agreed last|as things stand)\b"
    r"|现在|目前|最新|如今|最后一次|改到|改成",
    re.IGNORECASE,
)
_QUOTED = re.compile(r"`([^`\n]{2,80})`|“([^”\n]{2,80})”|「([^」\n]{2,80})」|\"([^\"\n]{2,80})\"")
_ASKS_WORDS = """
    what which who whom whose when where why how many much long old often far do does did is are was were has have had
    will would can could should name kind type sort date day time year month number currently now last latest newest
    present agreed exactly anything something 什么 多少 哪 哪个 哪天 哪里 谁 几 为什么 怎么 何时 是否
    现在 目前 最新 最近
    天 时候 一共 哪一天 哪位 多久 吗 呢
"""
_ASKS = frozenset(_ASKS_WORDS.split())
"""Words that say what is asked for, not what it is about."""


@dataclass(frozen=True, slots=True)
class ParsedQuestion:
    """A question, read."""

    text: str
    language: Literal["zh", "en"]
    wanted: Wanted
    terms: tuple[str, ...]
    """Stems of what it is about, each once."""
    musts: tuple[str, ...]
    """What it names exactly: identifiers, quoted names. Where one of these is nowhere, nothing answers it."""
    names: tuple[str, ...]
    """Names in it, of people and other things."""
    now: bool
    """It asks for what is so now, which says that it changed."""
    first: bool
    """It asks for what was so before it changed; otherwise the newest counts."""


def read(text: str) -> ParsedQuestion:
    """Read a question, English or Chinese."""
    language = language_of(text)
    wanted: Wanted = "phrase"
    for kind, pattern in _RULES[language]:
        if pattern.search(text.strip()):
            wanted = kind
            break
    about = [word for word in words(text) if word not in STOP_WORDS and word not in _ASKS]
    quoted = [next(filter(None, found.groups())).strip() for found in _QUOTED.finditer(text)]
    found = values(text)
    musts = [each.text for each in found if each.kind in ("identifier", "path", "url")]
    return ParsedQuestion(
        text,
        language,
        wanted,
        tuple(dict.fromkeys(map(stem, about))),
        tuple(dict.fromkeys((*quoted, *musts))),
        tuple(each.text for each in found if each.kind == "name"),
        _NOW.search(text) is not None,
        _FIRST.search(text) is not None,
    )


Ints = NDArray[np.int64]
LINE = 320
"""Characters beyond which a sentence (a line of JSON, of a log) is cut where a field or a clause ends."""
_ENDS = (", ", ",", "; ", "；", "，", "、", "|", " ")


def terms(text: str) -> list[str]:
    """The words of a text without stop words, English ones cut to their stems."""
    return [stem(word) for word in words(text) if word not in STOP_WORDS]


def stem(word: str) -> str:
    """The stem of an English word in lower case; any other word as it is."""
    return _stemmer()(word) if word.isascii() else word


@cache
def _stemmer() -> Callable[[str], str]:
    import Stemmer

    found: Callable[[str], str] = Stemmer.Stemmer("english").stemWord
    return found


class Library:
    """Texts by number, their sentences by number, and an inverted index from terms to sentences. It only grows."""

    def __init__(self) -> None:
        self.sentences: list[str] = []
        self._numbers: dict[str, int] = {}
        self._start = array("q", [0])
        """Where the sentences of each text begin; one more than there are texts."""
        self._text = array("q")
        """Of each sentence, its text."""
        self._having: dict[str, array[int]] = {}

    def number(self, text: str) -> int:
        """The number of a text, which is read if it was not before."""
        found = self._numbers.get(text)
        if found is None:
            found = self._numbers[text] = len(self._numbers)
            self._read(text, found)
        return found

    def spans(self, texts: Ints) -> tuple[Ints, Ints]:
        """Where the sentences of these texts begin, and where they end."""
        start = np.frombuffer(self._start, np.int64)
        return start[texts], start[texts + 1]

    def having(self, term: str) -> tuple[Ints, Ints]:
        """The sentences that have a term, ascending, and the text of each."""
        found = self._having.get(term)
        if found is None:
            return _NONE, _NONE
        sentences = np.array(found, np.int64)
        return sentences, np.frombuffer(self._text, np.int64)[sentences]

    @property
    def size(self) -> int:
        """How many texts there are."""
        return len(self._numbers)

    def _read(self, text: str, number: int) -> None:
        for sentence in sentences(text):
            for piece in pieces(sentence):
                for term in dict.fromkeys(terms(piece)):
                    self._having.setdefault(term, array("q")).append(len(self.sentences))
                self.sentences.append(piece)
                self._text.append(number)
        self._start.append(len(self.sentences))


_NONE = np.empty(0, np.int64)


def pieces(sentence: str) -> Iterable[str]:
    """A sentence, or its parts of at most LINE characters, cut where a field, a clause or a word ends."""
    start, size = 0, len(sentence)
    while size - start > LINE:
        stop = start + LINE
        for mark in _ENDS:
            found = sentence.rfind(mark, start + LINE // 2, stop)
            if found >= 0:
                stop = found + len(mark)
                break
        yield sentence[start:stop].strip()
        start = stop
    if rest := sentence[start:].strip():
        yield rest
