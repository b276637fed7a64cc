"""The words that records of a plant are made of, in English and Chinese."""

from __future__ import annotations

from typing import NamedTuple


class Words(NamedTuple):
    """Of one language. What has braces is a form."""

    rules: str
    house: tuple[str, ...]
    """Rules of the house: a system prompt of some length."""
    head: str
    field: str
    noted: str
    by_number: str
    by_quote: str
    answer: str
    forms: tuple[str, ...]
    """No eight words in a row of a form are the same in every sentence made of it."""
    places: tuple[str, ...]
    people: tuple[str, ...]
    things: tuple[str, ...]
    states: tuple[str, ...]
    shifts: tuple[str, ...]
    fields: tuple[tuple[str, str], ...]
    """Names and units."""
    space: str
    """Between sentences."""
    sentences: int
    """Around a record's fields: some 200 tokens with them."""


KINDS = ("INS", "DEL", "REP", "CAL", "AUD", "LOG")
"""What a record's number begins with."""
UNITS = ("mbar", "K", "l/min", "NTU", "cm", "µS", "kW", "mg/l", "h", "EUR")


def _pairs(first: str, second: str, between: str = "") -> tuple[str, ...]:
    """Every word of the first with every word of the second."""
    return tuple(f"{one}{between}{other}" for one in first.split() for other in second.split())


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


def _numbered(rules: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(f"{at}. {rule}" for at, rule in enumerate(rules * 5, 1))


_EN = Words(
    rules="You keep the log of a water works. Take in what is reported, and answer from it alone.",
    house=_numbered(
        (
            "Every record has a number; a record without one is sent back to whoever wrote it.",
            "Values are given with their unit, as the instrument shows them, and are never rounded.",
            "A record that is corrected keeps its number; the correction says what was wrong before.",
            "Whoever is on duty signs for the readings of the shift, and for nothing else.",
            "Nobody enters the filter hall alone, and nobody enters the chlorine store without a mask.",
            "What is reported by telephone is read back to the caller before it is entered.",
            "Alarms are answered within five minutes, and the answer is entered within the hour.",
            "A pump that has been repaired is watched for two shifts before it is relied upon.",
        )
    ),
    head="Record {number} from {place}, reported by {person}.",
    field="Its {field} is {value}.",
    noted="Noted as {number}.",
    by_number="Back to {number}: what is its {field}?",
    by_quote='A report of ours says: "{quote}". Which {field} is given there?',
    answer="The {field} is {value}, see {number}.",
    forms=(
        "The {thing} beside the {other} was {state} when {person} passed it {shift}.",
        "{person} wants {count} spare seals for the {thing}, which {colleague} calls {state}.",
        "At {place} the {thing} feeds the {other}, and both were {state} {shift}.",
        "Until {person} has seen {place}, the {thing} stays {state} and {colleague} waits.",
        "After {count} minutes the {thing} was {state}, which {person} blames on the {other}.",
        "In the drawing of {place} the {thing} precedes the {other}; {person} found it {state}.",
        "{person} cleaned the {thing} with {colleague} {shift} and left it {state}.",
        "Should the {thing} be {state} again, {place} sends {person} with a new {other}.",
        "Of {count} visitors to {place} only {person} noticed the {thing} being {state}.",
        "{person} wants the {thing} opened, the {other} photographed and {place} told {shift}.",
    ),
    places=_pairs(
        "North Mill Castle Harbour Linden Quarry Weaver Abbey Saddler Copper Falcon Willow Granite Bishop "
        "Tanner Orchard Meadow Raven Juniper Ferry Chapel Cooper Hazel Salt Lantern Alder Priory Garrison "
        "Cinder Heron",
        "station basin hall weir tower bridge culvert yard lock reservoir",
        " ",
    ),
    people=_pairs(
        "Ada Bruno Chiara Dmitri Elif Farid Greta Henrik Ines Jonas Katya Luis Mirela Nadia Oscar Priya "
        "Quentin Rosa Stefan Tamar Ulrich Vera Wanda Xavier Yusuf Zora Amara Boris Celine Diego Esther Felix "
        "Gita Hugo Irena Jamal Kira Leon Maren Nils",
        "Moreau Okafor Lindqvist Tanaka Novak Ferreira Haddad Kowalski Brandt Castellano Duarte Eriksen "
        "Fontaine Grigoryan Hashimoto Ivanova Jansen Keller Lombardi Mensah Nakamura Olsen Petrov Quispe "
        "Rahman Schneider Tremblay Usman Vasquez Weber Yilmaz Zhang Abramov Bianchi Clarke Dubois Engel "
        "Farouk Gupta Hoffmann",
        " ",
    ),
    things=_pairs(
        "upper lower old spare main outer second blue rear forward auxiliary vertical rotary brass tandem "
        "buried floating hinged narrow portable shielded twin welded yellow coarse double eastern flanged "
        "galvanised inner",
        "pump filter gauge intake sluice motor coupling sensor pipe tank bearing impeller manifold strainer "
        "turbine gasket actuator blower hydrant meter nozzle penstock relay screen thermostat valve winch "
        "agitator conduit diffuser",
        " ",
    ),
    states=_words(
        "dry wet warm loose noisy silent rusty clean blocked open shut slow worn tight bent cold dusty "
        "leaking stuck unsteady heavy cracked crooked faded frozen greasy hollow idle jammed leaning muddy "
        "offset pitted rattling scorched shaky slack sooty split stiff swollen tilted vibrating warped "
        "wobbly"
    ),
    shifts=(
        "after the night shift",
        "on the morning round",
        "before lunch",
        "at noon",
        "in the early afternoon",
        "during the storm",
        "at the end of the week",
        "on the first warm day",
        "while it rained",
        "after the fire drill",
        "before the audit",
        "on the way home",
    ),
    fields=tuple(
        zip(
            _words("pressure temperature flow turbidity level conductivity load hardness runtime charge"),
            UNITS,
            strict=True,
        )
    ),
    space=" ",
    sentences=7,
)

_ZH = Words(
    rules="你负责自来水厂的运行日志。记下报来的内容，只根据这些内容回答。",
    house=_numbered(
        (
            "每条记录都有编号；没有编号的退回给填写的人。",
            "数值按仪表显示填写，带上单位，不得四舍五入。",
            "更正的记录保留原来的编号，并写明原先错在哪里。",
            "当班的人只对本班的读数签字，不对别的签字。",
            "任何人不得独自进入滤池间，不戴面罩不得进入加氯间。",
            "电话报来的内容要向对方复述一遍再登记。",
            "报警必须在五分钟内答复，并在一小时内登记。",
            "修过的水泵要观察两个班次才能放心使用。",
        )
    ),
    head="记录{number}，来自{place}，由{person}报告。",
    field="它的{field}为{value}。",
    noted="已登记为{number}。",
    by_number="回到{number}：它的{field}是多少？",
    by_quote="我们有一条记录写着“{quote}”。那条里的{field}是多少？",
    answer="{field}是{value}，见{number}。",
    forms=(
        "{person}{shift}看到{other}旁边的{thing}已经{state}。",
        "{person}给{thing}要了{count}个密封圈，{colleague}说它{state}。",
        "{place}的{thing}接着{other}，{shift}都{state}。",
        "{person}去{place}之前，{thing}先{state}，{colleague}等着。",
        "过了{count}分钟{thing}又{state}，{person}怪{other}。",
        "{place}图纸上{thing}在{other}前，{person}发现它{state}。",
        "{person}和{colleague}{shift}清洗{thing}，之后它{state}。",
        "{thing}若再{state}，{place}就派{person}送来{other}。",
        "{place}的{count}位访客里，只有{person}听出{thing}{state}。",
        "{person}要{shift}打开{thing}，拍下{other}，并通知{place}。",
    ),
    places=_pairs(
        "北岭 磨坊 城东 海港 椴林 石场 织坊 南湾 铜山 柳溪 鹰嘴 灯塔 果园 渡口 盐田 梅岭 桥头 松岗 白沙 青龙 "
        "古井 红枫 竹园 云台 虎跑 荷塘 金鸡 沙洲 望江 杏花",
        "泵站 水池 厂房 水闸 水塔 大桥 涵洞 料场 船闸 水库",
    ),
    people=_pairs(
        "王 李 张 陈 赵 周 吴 郑 孙 钱 冯 褚 卫 蒋 沈 韩 杨 朱 秦 许 何 吕 施 孔 曹 严 华 金 魏 陶 姜 戚 谢 "
        "邹 喻 柏 窦 章 苏 潘",
        "建国 晓梅 志强 雨桐 海波 思远 丽华 文博 春燕 国栋 静怡 明辉 秀兰 子涵 家豪 玉珍 伟东 慧敏 德胜 佳宁 "
        "永康 雪莹 立新 红霞 启航 晨曦 振宇 婉清 长庚 若兰 少华 凤英 浩然 素芬 天佑 梦洁 兆丰 巧云 世杰 采薇",
    ),
    things=_pairs(
        "上层 下层 旧 备用 主 外侧 二号 蓝色 后部 前置 辅助 立式 旋转 黄铜 串联 埋地 浮动 铰接 窄型 便携 "
        "屏蔽 双联 焊接 黄色 粗格 重型 东侧 法兰 镀锌 内侧",
        "水泵 滤网 压力表 进水口 闸门 电机 联轴器 传感器 管道 储水罐 轴承 叶轮 汇流管 过滤器 水轮机 垫片 "
        "执行器 鼓风机 消火栓 流量计 喷嘴 压力管 继电器 格栅 恒温器 阀门 绞车 搅拌器 导流管 扩散器",
    ),
    states=_words(
        "干燥 潮湿 发热 松动 有噪音 没有声音 生锈 干净 堵塞 敞开 关死 变慢 磨损 卡紧 弯曲 冰凉 积灰 漏水 "
        "不动 不稳 沉重 开裂 歪斜 褪色 结冰 油腻 空响 闲置 卡死 倾斜 沾泥 错位 起坑 作响 烧焦 晃动 松垮 发黑 "
        "裂开 僵硬 鼓起 翘起 震动 变形 摇摆"
    ),
    shifts=(
        "夜班之后",
        "早上巡视时",
        "午饭之前",
        "中午",
        "下午早些时候",
        "暴雨当中",
        "周末",
        "天刚转暖那天",
        "下雨的时候",
        "消防演习之后",
        "审核之前",
        "回家路上",
    ),
    fields=tuple(zip(_words("压力 温度 流量 浊度 水位 电导率 负载 硬度 运行时间 费用"), UNITS, strict=True)),
    space="",
    sentences=6,
)

WORDS = {"en": _EN, "zh": _ZH}
