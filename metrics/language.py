"""Sentences and words of English and Chinese text, mixed as agents' conversations mix them.

A newline always ends a sentence: what agents read (logs, code, tables, lists) has one thing a line, and prose that
wraps its lines is rare in it. Linear in the length of the text. Chinese words come from `rjieba`, whose dictionary is
in its wheel; it is imported (0.4 s, once) when the first Chinese text is asked for.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from functools import cache, lru_cache
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


_UPPER, _LOWER = "A-ZÀ-ÖØ-ÞĀ-Ž", "a-zß-öø-ÿā-ž"
_CAPITAL = rf"[{_UPPER}](?>(?:[{_UPPER}{_LOWER}]|['’](?=[{_UPPER}{_LOWER}]))*)(?>(?:-[{_UPPER}][{_LOWER}]++)*)"
_TITLE = r"(?:(?<=\b[A-Z])|(?<=\b(?:Mr|Ms|Dr))|(?<=\bMrs)|(?<=\bProf))"
_JOIN = rf"(?:\ (?:(?:of|de|la|van|von|der|da|di|del|bin|the|&)\ ){{0,2}}|{_TITLE}\.\ )"
_RUN = re.compile(rf"(?<![A-Za-z0-9_@./#$'’-]){_CAPITAL}(?>(?:{_JOIN}{_CAPITAL})*)")
_NO_END = re.compile(r"[A-Za-z0-9_(/@]")
_QUOTED = re.compile(
    rf"[《「『“]([{HAN}\w][^《》「」『』“”\n，。！？,.!?]{{0,38}})[》」』”]"
    r"|\"([A-Z][^\"\n,.!?:{}=]{1,38})\"(?!\s*:)"
)
_STARTS = re.compile(r"(?:^|[.!?。！？\n\r|>])[\s\"'“”‘’(*_#>\[-]*$")
_HAN_RUN = re.compile(f"[{HAN}·]++")

_COMMON_WORDS = """
    I I'm I'll I've I'd I’m I’ll I’ve I’d A An The This That These Those It It's He She We You They My Your His Her
    Our Their Its And But Or So If When While What Where Which Who Why How As At By For From In Into Of On To With
    Without Not No Yes Ok OK Okay Please Thanks Thank Hi Hello Hey Dear Sorry Sure Great Good Well Also Then There
    Here Now Just Let Let's Can Could Would Should Will May Might Must Do Does Did Is Are Was Were Be Been Has Have
    Had Am All Any Some Each Every Both After Before Since Until Once Because Though However Therefore First Second
    Third Next Last Finally Only Whether One Use Add Get Set Run See Show Check Create Update Read Note Error Warning
    Yeah Wow Oh Mr Mrs Ms Dr AM PM UTC TODO TRUE FALSE True False None NULL INFO DEBUG WARN WARNING ERROR PASSED
    FAILED FAILURES NOT AND OR IF MUST MB GB KB MiB ID
"""
_COMMON = frozenset(_COMMON_WORDS.split())
_SURNAMES = frozenset(
    "王李张刘陈杨赵黄周吴徐孙胡朱高林何郭马罗梁宋郑谢韩唐冯于董萧程曹袁邓许傅沈曾彭吕苏卢蒋蔡贾丁魏薛叶阎余潘杜戴夏钟"
    "汪田任姜范方石姚谭廖邹熊金陆郝孔白崔康毛邱秦江史顾侯邵孟龙万段雷钱汤尹黎易常武乔贺赖龚文庞樊兰殷施陶洪翟安颜倪严"
    "牛温芦季俞章鲁葛伍韦申尤毕聂焦柳邢路岳齐梅莫庄辛管祝左涂谷祁时舒耿牟卜詹关苗凌费纪靳盛童欧甄项曲成游阳裴席卫屈鲍"
    "位覃霍翁植甘景薄司柏宁柯阮桂闵上诸老小阿"
)
"""The first characters of family names, and of the familiar 老王, 小李, 阿明."""
_NO_NAMES_LIST = """
    明白 高兴 安排 马上 方便 关键 成功 文明 安静 和平 平安 温度 程序 时间 向导 白天 周末 周到 常规 管理 任务 时候
    小心 小时 老师 老板 老人 小孩 小组 小区 老家 小吃 小米 阿姨 严格 严重 高速 高度 高级 金额 金牌 文件 文化 文本
    方案 方法 路径 万一 成为 费用 关于 关注 任何 何时 何人 何处 江南 安全 安装 安心 安慰 武器 温柔 温暖 温馨 温和
    甘心 盛大 齐全 易怒 黄金 白色 常见 向往 于是 于此 施工 严肃 康复 祝福 祝贺 祝愿 谢谢 顾客 方式 方向 方面 石头
    石油 毛病 席位 查询 查看 令牌 日志 中断 新建 新旧 许可 许可证 入口 加密 哈希 田野 白名单 城市 大街 遮阳 旧版本
    深度 庆典 东西 英雄 入馆 美丽 吉他 长大 崇拜 关联 商城 湖泊 攀岩 宕机 毛巾 桂花 小提琴 百万富翁 中心广场 共和国
    陆战队 高峰 申请人 胡同 谷仓 北门 镇及 东至 张表 周子 沈子 魏子
"""
_NO_NAMES = frozenset(_NO_NAMES_LIST.split())
"""What the dictionary takes for names of people and places, and what in talk with an agent is none."""
_AFTER = frozenset("会说和与在的要让把给及")
"""What the dictionary leaves at the end of a name."""


def is_name(text: str) -> bool:
    """Whether the whole text is written like a name."""
    return text not in _COMMON and (
        _RUN.fullmatch(text) is not None or (_HAN_RUN.fullmatch(text) is not None and _is_tagged(text))
    )


def names(text: str, taken: Sequence[tuple[int, int]]) -> Iterator[tuple[int, str]]:
    """Each name with its place, outside the places that are `taken` (start, stop; in order)."""
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
        yield from ((start, name) for start, name in _chinese(text) if free(start, start + len(name)))


def _trimmed(text: str, match: re.Match[str]) -> tuple[int, str]:
    """The run without common words at its ends; nothing if it is one word that starts a sentence or is common."""
    start, parts = match.start(), match.group().split(" ")
    opens = start == 0 or _STARTS.search(text, max(0, start - 12), start) is not None
    while parts and parts[0] in _COMMON:
        start += len(parts.pop(0)) + 1
        opens = False
    if parts and _NO_END.match(text, match.end()):  # the last word goes on: "foo(", "Foo_bar"
        parts.pop()
    while parts and (parts[-1] in _COMMON or not parts[-1][0].isupper()):
        parts.pop()
    if not parts or (len(parts) == 1 and (opens or len(parts[0]) < 2)):
        return start, ""
    return start, " ".join(parts)


def _chinese(text: str) -> Iterator[tuple[int, str]]:
    for run in _HAN_RUN.finditer(text):
        at = run.start()
        for word in cutter()(run.group()):
            name = word[:-1] if len(word) > 2 and word[-1] in _AFTER else word
            if 2 <= len(name) <= 10 and _is_tagged(name):
                yield at, name
            at += len(word)


@lru_cache(65536)
def _is_tagged(word: str) -> bool:
    """Tagged as a place or an organisation, or as a person and it begins with a surname."""
    tags = _tagger()(word)
    if len(tags) != 1 or word in _NO_NAMES:
        return False
    tag = tags[0][1]
    return tag in ("ns", "nt", "nrt") or (tag == "nr" and word[0] in _SURNAMES)


@cache
def _tagger() -> Callable[[str], list[tuple[str, str]]]:
    import rjieba

    tag: Callable[[str], list[tuple[str, str]]] = rjieba.tag
    return tag


_DECISION = re.compile(
    r"\b(?:decid(?:e|ed|es|ing)|decision|agreed?|approved?|confirm(?:s|ed)?|chose|chosen|choose|settled? on"
    r"|final(?:ly|ised|ized)?|conclu(?:de|ded|sion)|go(?:ing)? with|we'll use|instead of|switch(?:ed)? to|moved? to"
    r"|changed? to|resolved|plan to|scheduled|booked|cancel(?:l?ed)?)\b",
    re.ASCII,
)
_ZH_DECISION = re.compile(
    r"决定|确定|最终|决议|同意|批准|确认|选定|敲定|定为|改为|改成|换成|采用|通过了|结论|定了|就用|预订|取消"
)
_CONSTRAINT = re.compile(
    r"\b(?:must(?:n't)?|never|always|only|at (?:most|least)|no (?:more|less|later|earlier) than|require[sd]?"
    r"|requirement|limit(?:ed)?|cannot|can't|can not|may not|should(?:n't| not)|do not|don't|not allowed|forbidden"
    r"|prohibited|deadline|by the end of|within|budget|maximum|minimum|mandatory|unless|except|prefers?|allerg(?:y|ic)"
    r"|need(?:s|ed)? to|have to|policy|rule)\b",
    re.ASCII,
)
_ZH_CONSTRAINT = re.compile(
    r"必须|不得|禁止|不能|不可以?|不要|只能|仅限|至少|至多|最多|最少|不超过|不低于|不少于|务必|要求|限制|截止|期限|预算|上限"
    r"|下限|除非|一定要|千万|规定|需要|过敏|偏好|优先"
)


def is_decision(sentence: str) -> bool:
    """Whether the sentence says what was decided."""
    return _says(sentence, _DECISION, _ZH_DECISION)


def is_constraint(sentence: str) -> bool:
    """Whether the sentence says what must or must not be."""
    return _says(sentence, _CONSTRAINT, _ZH_CONSTRAINT)


def _says(sentence: str, english: re.Pattern[str], chinese: re.Pattern[str]) -> bool:
    """In lower case, which takes a sixth of the time that a pattern without regard to case does."""
    if english.search(sentence.lower()) is not None:
        return True
    return not sentence.isascii() and chinese.search(sentence) is not None
