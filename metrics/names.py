"""Names of people, places, products: English ones by their capitals, Chinese ones by their tags, both when quoted."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from functools import cache, lru_cache

from .language import HAN, cutter

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
