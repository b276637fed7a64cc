"""What the research scenario asks about: questions, outcomes, moderators, places. All studies are invented.

A pair is (English, Chinese).
"""

from __future__ import annotations

from typing import NamedTuple

Pair = tuple[str, str]


class Outcome(NamedTuple):
    """Something measured. `falls` = an effect lowers it; the effect is between low and high, in the unit."""

    name: Pair
    unit: Pair
    low: float
    high: float
    falls: bool


class Moderator(NamedTuple):
    """Something that an effect depends on, with a cut between low and high in the unit."""

    name: Pair
    unit: Pair
    low: int
    high: int


class Field(NamedTuple):
    """One research question."""

    question: Pair
    treatments: tuple[Pair, ...]
    outcomes: tuple[Outcome, ...]
    moderators: tuple[Moderator, ...]
    units: Pair
    places: tuple[Pair, ...]
    mechanisms: tuple[Pair, ...]
    instruments: tuple[Pair, ...]


FIELDS = (
    Field(
        ("whether planted roofs keep the flats below them cool", "绿化屋顶能不能让下面的住宅更凉快"),
        (
            ("sedum roofs", "景天屋顶"),
            ("meadow roofs", "草甸屋顶"),
            ("wet roofs", "蓄水屋顶"),
            ("herb roofs", "香草屋顶"),
        ),
        (
            Outcome(("peak indoor temperature", "室内最高温度"), ("°C", "℃"), 0.4, 4.2, True),
            Outcome(("cooling electricity", "制冷用电"), ("kWh per week", "度每周"), 2.1, 19.5, True),
            Outcome(("summer run-off", "夏季径流"), ("mm", "毫米"), 3.0, 28.0, True),
            Outcome(("membrane temperature", "防水层温度"), ("°C", "℃"), 4.0, 21.0, True),
            Outcome(("reported sleep", "自报睡眠时长"), ("minutes", "分钟"), 6.0, 41.0, False),
            Outcome(("night-time cooling", "夜间降温幅度"), ("°C", "℃"), 0.3, 2.4, False),
        ),
        (
            Moderator(("substrate depth", "基质厚度"), ("cm", "厘米"), 5, 19),
            Moderator(("roof age", "屋顶年龄"), ("years", "年"), 2, 14),
            Moderator(("irrigation", "灌溉量"), ("l per week", "升每周"), 11, 60),
            Moderator(("storeys below the roof", "屋顶以下楼层数"), ("", "层"), 2, 9),
            Moderator(("insulation", "保温层厚度"), ("cm", "厘米"), 3, 22),
            Moderator(("plant cover", "植被覆盖率"), ("percent", "%"), 35, 90),
        ),
        ("roofs", "个屋顶"),
        (
            ("Brennhaven", "白榆港"),
            ("Ostermoor", "南坪市"),
            ("Calder Quay", "青禾湾"),
            ("Lindmark", "临岳县"),
            ("Saint Orrin", "云浦镇"),
        ),
        (
            ("evaporation from the substrate", "基质的水分蒸发"),
            ("shading of the membrane", "植被对防水层的遮阴"),
            ("the thermal mass of wet soil", "湿土的热容"),
            ("less radiation towards the parapet", "女儿墙受到的辐射减少"),
        ),
        (
            ("site loggers", "现场记录仪"),
            ("paired sensors", "成对传感器"),
            ("monthly inspections", "月度巡查"),
            ("household logs", "住户台账"),
        ),
    ),
    Field(
        (
            "whether spaced practice helps adults to keep the words of a new language",
            "间隔练习能否帮助成年人记住外语单词",
        ),
        (
            ("widening intervals", "递增间隔"),
            ("equal intervals", "等长间隔"),
            ("evening reviews", "睡前复习"),
            ("mixed decks", "混合词卡"),
        ),
        (
            Outcome(("words recalled after a month", "一个月后的回忆量"), ("words", "个词"), 3.0, 31.0, False),
            Outcome(("recall time", "回忆时间"), ("ms", "毫秒"), 40.0, 460.0, True),
            Outcome(("false recognitions", "误认次数"), ("per list", "次每表"), 0.5, 6.0, True),
            Outcome(("lessons attended", "出勤课时"), ("lessons", "课时"), 0.8, 7.5, False),
            Outcome(("spelling errors", "拼写错误"), ("per page", "个每页"), 0.6, 8.0, True),
            Outcome(("confidence ratings", "自信评分"), ("points", "分"), 2.0, 18.0, False),
        ),
        (
            Moderator(("the first interval", "首次间隔"), ("hours", "小时"), 6, 72),
            Moderator(("list length", "词表长度"), ("words", "个词"), 20, 90),
            Moderator(("age", "年龄"), ("years", "岁"), 28, 66),
            Moderator(("weekly practice", "每周练习量"), ("minutes", "分钟"), 30, 210),
            Moderator(("prior lessons", "已学课时"), ("", "课时"), 10, 120),
            Moderator(("session length", "单次时长"), ("minutes", "分钟"), 8, 45),
        ),
        ("learners", "名学习者"),
        (
            ("Varnholt", "文澜书院"),
            ("Port Elsing", "海棠里社区"),
            ("Tessaly", "望江夜校"),
            ("Kirkvale", "松原学堂"),
            ("Monteira", "新桥中心"),
        ),
        (
            ("effortful retrieval", "费力的提取"),
            ("sleep between two sessions", "两次练习之间的睡眠"),
            ("less interference between lists", "词表间干扰减少"),
            ("a change of context between sessions", "练习情境的变化"),
        ),
        (
            ("weekly tests", "每周测验"),
            ("app logs", "应用日志"),
            ("classroom records", "课堂记录"),
            ("supervised sessions", "现场测试"),
        ),
    ),
    Field(
        ("whether oyster reefs slow the erosion of soft shores", "牡蛎礁能否减缓软质岸线的侵蚀"),
        (
            ("bagged-shell reefs", "袋装贝壳礁"),
            ("concrete domes", "混凝土礁球"),
            ("scattered shells", "散铺贝壳"),
            ("lattice reefs", "格栅礁"),
        ),
        (
            Outcome(("shoreline retreat", "岸线后退"), ("cm per year", "厘米每年"), 4.0, 88.0, True),
            Outcome(("wave height", "波高"), ("cm", "厘米"), 2.0, 27.0, True),
            Outcome(("sediment gain", "淤积厚度"), ("mm", "毫米"), 3.0, 54.0, False),
            Outcome(("marsh width", "盐沼宽度"), ("m", "米"), 0.6, 9.5, False),
            Outcome(("juvenile fish", "幼鱼数量"), ("per haul", "尾每网"), 2.0, 39.0, False),
            Outcome(("bank slope", "岸坡坡度"), ("degrees", "度"), 1.0, 14.0, True),
        ),
        (
            Moderator(("crest height", "礁顶高度"), ("cm", "厘米"), 15, 90),
            Moderator(("tidal range", "潮差"), ("cm", "厘米"), 60, 410),
            Moderator(("fetch", "风区长度"), ("km", "公里"), 1, 18),
            Moderator(("reef age", "礁龄"), ("years", "年"), 2, 11),
            Moderator(("distance from the bank", "离岸距离"), ("m", "米"), 6, 75),
            Moderator(("salinity", "盐度"), ("psu", "psu"), 9, 31),
        ),
        ("transects", "条断面"),
        (
            ("Harrow Sound", "鹭屿湾"),
            ("the Menner estuary", "清渡河口"),
            ("Pelham Flats", "长汀滩"),
            ("Skarne Bay", "石浦湾"),
            ("Dunlea", "沙溪口"),
        ),
        (
            ("waves that break on the crest", "波浪在礁顶破碎"),
            ("finer sediment settling in the lee", "细颗粒在背浪面沉降"),
            ("roots that gain a season", "植物根系多长一季"),
            ("a lower current along the bank", "沿岸流速降低"),
        ),
        (
            ("fixed stations", "固定测站"),
            ("drone surveys", "无人机测绘"),
            ("monthly walks", "月度巡测"),
            ("paired gauges", "成对量测仪"),
        ),
    ),
    Field(
        ("whether cargo bikes can replace vans on the last mile", "货运自行车能否替代最后一公里的厢式货车"),
        (
            ("micro-depots", "微型中转仓"),
            ("two-wheeled bikes", "两轮货运车"),
            ("trailer bikes", "拖挂式货运车"),
            ("shared fleets", "共享车队"),
        ),
        (
            Outcome(("drops per hour", "每小时投递数"), ("drops", "件"), 0.7, 7.5, False),
            Outcome(("cost per parcel", "单件成本"), ("cents", "分"), 6.0, 74.0, True),
            Outcome(("kerb time", "路边停靠时间"), ("minutes per stop", "分钟每次"), 0.5, 4.8, True),
            Outcome(("failed deliveries", "投递失败"), ("per thousand", "件每千件"), 2.0, 31.0, True),
            Outcome(("rider turnover", "骑手流失率"), ("points", "个百分点"), 2.0, 17.0, True),
            Outcome(("distance ridden", "行驶里程"), ("km per shift", "公里每班"), 2.0, 21.0, True),
        ),
        (
            Moderator(("parcel weight", "包裹重量"), ("kg", "公斤"), 3, 24),
            Moderator(("depot distance", "中转仓距离"), ("km", "公里"), 1, 8),
            Moderator(("street gradient", "街道坡度"), ("percent", "%"), 2, 9),
            Moderator(("stop density", "站点密度"), ("stops per km", "个每公里"), 4, 38),
            Moderator(("rider experience", "骑手经验"), ("months", "个月"), 2, 26),
            Moderator(("rain", "雨天数"), ("days per month", "天每月"), 4, 17),
        ),
        ("delivery rounds", "个投递班次"),
        (
            ("Aldermere", "梧桐区"),
            ("Nordhavn Hill", "北塘街道"),
            ("Quellin", "临川新区"),
            ("Westerby", "西园路片区"),
            ("Tamsin Cross", "河东老城"),
        ),
        (
            ("shorter searches for a place to stop", "找停车位的时间缩短"),
            ("riders who take the footpath", "骑手可走人行通道"),
            ("smaller loads that are sorted better", "小批量分拣更细"),
            ("fewer detours around one-way streets", "单行道绕行减少"),
        ),
        (
            ("scanner logs", "扫码记录"),
            ("ride-along notes", "跟车记录"),
            ("depot registers", "站点登记簿"),
            ("shift records", "班次台账"),
        ),
    ),
    Field(
        ("whether flower strips raise the yield of orchards", "果园种花带能否提高产量"),
        (
            ("perennial strips", "多年生花带"),
            ("annual strips", "一年生花带"),
            ("mown alleys", "刈割行间"),
            ("hedge margins", "树篱边缘"),
        ),
        (
            Outcome(("fruit set", "坐果率"), ("points", "个百分点"), 1.5, 16.0, False),
            Outcome(("wild bee visits", "野蜂访花"), ("per hour", "次每小时"), 2.0, 34.0, False),
            Outcome(("aphid colonies", "蚜虫群落"), ("per branch", "个每枝"), 0.6, 9.0, True),
            Outcome(("seeds per fruit", "单果种子数"), ("seeds", "粒"), 0.4, 3.9, False),
            Outcome(("misshapen fruit", "畸形果"), ("per crate", "个每箱"), 0.8, 11.0, True),
            Outcome(("sprays per season", "每季喷药"), ("sprays", "次"), 0.5, 4.5, True),
        ),
        (
            Moderator(("strip width", "花带宽度"), ("m", "米"), 2, 12),
            Moderator(("distance to woodland", "离林地距离"), ("m", "米"), 80, 950),
            Moderator(("strip age", "花带年龄"), ("years", "年"), 2, 8),
            Moderator(("orchard size", "果园面积"), ("ha", "公顷"), 2, 27),
            Moderator(("sown species", "播种物种数"), ("", "种"), 6, 34),
            Moderator(("hive density", "蜂箱密度"), ("hives per ha", "箱每公顷"), 1, 6),
        ),
        ("orchard blocks", "个果园小区"),
        (
            ("Ferrow Vale", "杏花沟"),
            ("Lower Ansty", "柳河乡"),
            ("Marrowfield", "果岭镇"),
            ("Castle Brae", "西山坳"),
            ("Olvera Downs", "云台坡"),
        ),
        (
            ("longer foraging seasons", "采集季延长"),
            ("nesting places close to the trees", "树旁有更多筑巢点"),
            ("predators that winter in the strip", "天敌在花带里越冬"),
            ("pollen moved between cultivars", "品种间花粉交流"),
        ),
        (
            ("weekly counts", "每周计数"),
            ("transect walks", "样线调查"),
            ("marked branches", "标记枝条"),
            ("grower logs", "种植户台账"),
        ),
    ),
)


class Criterion(NamedTuple):
    """A criterion of the review that people change their minds about."""

    name: Pair
    unit: Pair
    low: int
    high: int
    step: int


CRITERIA = (
    Criterion(("minimum sample size", "最小样本量"), ("", ""), 60, 390, 10),
    Criterion(("earliest year of publication", "最早发表年份"), ("", "年"), 2004, 2016, 1),
    Criterion(("largest accepted dropout", "可接受的最大流失率"), ("percent", "%"), 11, 34, 1),
    Criterion(("shortest follow-up", "最短随访期"), ("months", "个月"), 3, 23, 1),
    Criterion(("number of studies in the review", "综述纳入的研究数"), ("", "项"), 13, 41, 1),
    Criterion(("length of the review", "综述篇幅"), ("words", "字"), 3250, 8750, 250),
    Criterion(("smallest number of sites", "最少站点数"), ("", "个"), 3, 14, 1),
)
