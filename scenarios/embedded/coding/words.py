"""What the coding scenario's invented services are about: domains, module roles, constants, people."""

from __future__ import annotations

from typing import NamedTuple


class Domain(NamedTuple):
    """One line of business. `things` are (name in code, Chinese word)."""

    about: str
    about_zh: str
    projects: tuple[str, ...]
    things: tuple[tuple[str, str], ...]
    numbers: tuple[str, ...]
    texts: tuple[str, ...]
    states: tuple[str, ...]
    verbs: tuple[str, ...]


def _things(text: str) -> tuple[tuple[str, str], ...]:
    pairs = (pair.split("=") for pair in text.split())
    return tuple((name, chinese) for name, chinese in pairs)


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


DOMAINS = (
    Domain(
        "parcel logistics",
        "包裹物流",
        _words("tidegate larkway corvane mossdock"),
        _things(
            "parcel=包裹 route=线路 depot=站点 manifest=舱单 courier=快递员 pallet=托盘 label=面单 pickup=揽收单 "
            "customs_form=报关单 return_slip=退货单 trailer=挂车 dock_slot=月台时段"
        ),
        _words("weight_g volume_cm3 declared_cents stop_count delay_minutes distance_m attempts priority"),
        _words("barcode zone origin carrier_ref postcode handling_code"),
        _words("booked sorted in_transit held delivered returned"),
        _words("dispatch sort weigh reserve release reroute seal scan"),
    ),
    Domain(
        "electricity metering",
        "电表计量",
        _words("wattlebird ampersea fluxmere ohmstead"),
        _things(
            "meter=电表 reading=读数 tariff=电价 feeder=馈线 outage=停电记录 invoice=账单 substation=变电站 "
            "customer=用户 phase=相位 concentrator=集中器 tamper_event=窃电事件 load_profile=负荷曲线"
        ),
        _words("kwh_total peak_w voltage_mv gap_minutes multiplier register_no drift_ppm estimate_wh"),
        _words("serial_no district firmware contract_ref gateway_ref tariff_code"),
        _words("installed active silent suspect estimated retired"),
        _words("poll estimate bill rebase verify aggregate isolate restore"),
    ),
    Domain(
        "ferry bookings",
        "轮渡订票",
        _words("quaybook saltline pierhead brinemark"),
        _things(
            "sailing=航次 ticket=船票 vessel=船舶 berth=泊位 cabin=舱位 vehicle=车辆 waitlist=候补单 refund=退款单 "
            "voucher=代金券 crew_shift=船员班次 boarding_pass=登船牌 port_call=靠港记录"
        ),
        _words("fare_cents seats_left deck_no length_cm draught_mm delay_minutes occupancy surcharge_cents"),
        _words("booking_ref harbour lane_code passenger_ref plate_no season_code"),
        _words("draft confirmed boarded cancelled rebooked expired"),
        _words("book board cancel rebook quote upgrade hold release"),
    ),
    Domain(
        "greenhouse control",
        "温室控制",
        _words("fernwright loamline verdaxis petalgrid"),
        _things(
            "sensor=传感器 valve=阀门 zone_plan=分区方案 crop=作物 recipe=配方 irrigation=灌溉任务 vent=通风口 "
            "dosing=加药记录 harvest=采收单 alarm=告警 shade_curtain=遮阳帘 nutrient_tank=营养液罐"
        ),
        _words("moisture_pct temp_cc flow_ml ec_us par_umol runtime_s lag_minutes dose_ul"),
        _words("bay_code device_ref cultivar firmware row_label probe_ref"),
        _words("idle armed running faulted paused retired"),
        _words("sample open_up throttle_down dose flush calibrate arm settle"),
    ),
    Domain(
        "merchant settlement",
        "商户结算",
        _words("coinharbor ledgerfen tallywick mintbrook"),
        _things(
            "payout=出款单 merchant=商户 dispute=争议单 statement=对账单 fee_rule=费率规则 transfer=转账 "
            "reserve=准备金 "
            "batch_file=批次文件 currency_lot=外汇批 mandate=扣款授权 chargeback=拒付单 settlement=结算单"
        ),
        _words("amount_cents fee_bps hold_days rate_e6 line_count retry_no balance_cents lag_minutes"),
        _words("merchant_ref currency bank_code trace_no region batch_label"),
        _words("pending matched frozen settled reversed failed"),
        _words("match settle freeze reverse accrue allocate submit net"),
    ),
)

ROLES = (
    ("router", "路由", "flow"),
    ("cache", "缓存", "storage"),
    ("store", "存储", "storage"),
    ("client", "客户端", "edge"),
    ("scheduler", "调度器", "jobs"),
    ("exporter", "导出器", "edge"),
    ("validator", "校验器", "rules"),
    ("importer", "导入器", "edge"),
    ("planner", "规划器", "flow"),
    ("notifier", "通知器", "edge"),
    ("throttle", "限流器", "flow"),
    ("reconciler", "核对器", "jobs"),
    ("index", "索引", "storage"),
    ("registry", "注册表", "storage"),
    ("pricing", "计价器", "rules"),
    ("auditor", "审计器", "rules"),
    ("worker", "工作进程", "jobs"),
    ("gateway", "网关", "edge"),
    ("archiver", "归档器", "storage"),
    ("matcher", "匹配器", "rules"),
    ("allocator", "分配器", "flow"),
    ("sweeper", "清理器", "jobs"),
)
"""(name in code, Chinese word, package)."""


class Kind(NamedTuple):
    """A kind of constant. `unit` and `unit_zh` follow the number; the range is low, high, step."""

    suffix: str
    name: str
    name_zh: str
    unit: str
    unit_zh: str
    low: int
    high: int
    step: int


KINDS = (
    Kind("MAX_ATTEMPTS", "retry limit", "重试上限", "attempts", "次", 4, 17, 1),
    Kind("TIMEOUT_S", "request timeout", "请求超时", "seconds", "秒", 11, 95, 1),
    Kind("BATCH_SIZE", "batch size", "批大小", "rows", "行", 60, 940, 10),
    Kind("CACHE_TTL_S", "cache lifetime", "缓存有效期", "seconds", "秒", 75, 3585, 15),
    Kind("BACKOFF_MS", "base back-off", "退避基数", "milliseconds", "毫秒", 120, 2380, 20),
    Kind("POOL_SIZE", "connection pool size", "连接池大小", "connections", "个连接", 12, 58, 1),
    Kind("STALE_AFTER_H", "staleness limit", "过期阈值", "hours", "小时", 11, 96, 1),
    Kind("PAGE_LIMIT", "page limit", "分页上限", "rows", "行", 35, 495, 5),
    Kind("LEASE_S", "lock lease", "锁租期", "seconds", "秒", 13, 238, 1),
    Kind("QUEUE_DEPTH", "queue depth", "队列深度", "entries", "条", 96, 4064, 32),
    Kind("PREFETCH", "prefetch count", "预取数量", "messages", "条消息", 12, 46, 1),
    Kind("WARN_AT_PERCENT", "warning threshold", "告警阈值", "percent", "%", 56, 94, 1),
    Kind("MAX_PAYLOAD_KB", "payload limit", "报文上限", "kilobytes", "KB", 80, 2032, 16),
    Kind("GRACE_MINUTES", "grace period", "宽限期", "minutes", "分钟", 11, 56, 1),
    Kind("SHARDS", "shard count", "分片数", "shards", "个分片", 11, 37, 1),
    Kind("DRIFT_LIMIT_MS", "clock drift limit", "时钟漂移上限", "milliseconds", "毫秒", 25, 475, 5),
)

PEOPLE = (
    "Mira Aldous",
    "Tomas Brekke",
    "Ines Calloway",
    "Jonah Drummel",
    "Petra Eskildsen",
    "Rafael Fonteyn",
    "Saskia Gorringe",
    "Dov Halpert",
    "Leena Ivarsson",
    "Callum Jessop",
    "Noor Kesteven",
    "Bruno Lachapelle",
    "Yara Mendel",
    "Oskar Niehaus",
    "Freya Ormsby",
    "Kofi Pellworth",
    "Hana Quist",
    "Emil Radvan",
)
PEOPLE_ZH = (
    ("沈若川", "Shen Ruochuan"),
    ("顾宁远", "Gu Ningyuan"),
    ("陆知遥", "Lu Zhiyao"),
    ("程砚秋", "Cheng Yanqiu"),
    ("何以航", "He Yihang"),
    ("苏明棠", "Su Mingtang"),
    ("贺书白", "He Shubai"),
    ("叶南星", "Ye Nanxing"),
    ("宋怀瑾", "Song Huaijin"),
    ("邵云起", "Shao Yunqi"),
    ("温如初", "Wen Ruchu"),
    ("方逸舟", "Fang Yizhou"),
    ("梁思齐", "Liang Siqi"),
    ("唐以墨", "Tang Yimo"),
    ("严清和", "Yan Qinghe"),
    ("季长风", "Ji Changfeng"),
)
"""(as people say it, as git has it)."""

LOCALS = _words(
    "pending found kept window chunk total bucket merged seen cursor latest wanted spare head remaining grouped chosen "
    "ranked gaps parts budget stale touched missing held_back accepted refused previous upcoming left_over picked "
    "ordered lookup counts weights offsets span queued settled_now snapshot draft known fresh_rows tail outcome ready "
    "blocked fallback limit_hit share base delta quota frontier ledger_rows overlap covered marked waiting"
)
"""Names of local variables."""

FLAGS = _words("strict dry_run force include_held quiet allow_stale partial verbose_log skip_locked newest_first")
