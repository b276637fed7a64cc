"""What docs_qa says in Chinese: names, kinds of settings, labels."""

from __future__ import annotations

from . import zh_content, zh_operation
from .pack import Aspect, Kind, Pack, Thing, chapters
from .zh_pages import PAGES
from .zh_talk import TALK

_SYSTEM = """你是{company}的文档问答助手，负责解答{product}的使用问题（文档版本 {version}）。

一、职责
- 面向管理员、技术支持和集成工程师，回答与{product}有关的问题。
- 凡涉及数值、上限、步骤、权限和报错的说法，必须来自本次会话中 `search_docs` 检索到的段落，\
或用户对自己环境的说明，并讲清楚属于哪一种。
- 文档里没有的内容就直接说明没有，不得猜测默认值。

二、检索
- 回答新问题之前先调用 `search_docs`。单一主题用 `mode="local"`，精确的配置项和错误码用 \
`mode="naive"`，跨多个章节用 `mode="mix"`；`top_k` 取 10 到 80。
- 同一条消息里互不相关的问题可以并行检索。
- 已经检索到的内容不要重复检索，直接引用即可。

三、回答
- 先给数值，再用反引号给出配置项，并在括号中注明页面路径。
- 操作步骤使用编号列表，不要合并步骤，用户会按编号追问。
- 文档写的是默认值。用户在某个站点改过的值，对该站点优先于默认值，并始终以最近一次告知的为准。
- 行文中的日期写作“2026 年 3 月 4 日”。
- 除操作步骤外，回答不超过 400 字。"""

_NAMES: dict[str, tuple[str, ...]] = {
    "products": ("云枢档案平台", "衡舟协同平台", "墨川文控系统", "澄岳数据平台", "启衡业务中台", "岚图文档平台"),
    "companies": ("衡石软件", "远樟科技", "青崖数字", "北汀信息", "和屿软件"),
    "commands": ("yshu", "hzctl", "mchuan", "cyue", "qheng"),
    "menus": ("系统管理", "控制台", "治理中心", "运维中心", "工作区设置"),
    "zones": ("bj1", "sh2", "north", "core", "dmz"),
    "roles": (
        "合规专员",
        "平台管理员",
        "档案管理员",
        "站点运维",
        "集成工程师",
        "工作区所有者",
        "内审人员",
        "数据保护专员",
        "值班主管",
        "发布协调人",
        "业务分析员",
        "服务经理",
    ),
    "sites": ("临港站点", "江北站点", "松山站点", "云岭站点", "海棠湾站点", "石桥站点", "东湖站点", "滨河站点"),
    "teams": ("技术支持组", "平台组", "存储组", "夜班组", "迁移小组", "网络组", "发布委员会", "数据办"),
    "people": ("林悦", "周启明", "陈思远", "何嘉", "吴晓岚", "徐航", "孙若溪", "郑凯", "唐敏", "罗一帆"),
    "decoys": (
        "传真网关",
        "语音助手",
        "区块链存证",
        "大型机桥接",
        "条码自助机",
        "会员积分模块",
        "无人机盘点",
        "手表客户端",
        "薪资适配器",
        "访客证打印机",
    ),
    "occasions": ("升级窗口", "灾备演练", "机房搬迁", "证书更换", "压力测试", "全员培训"),
}

_LABELS = {
    "found": "针对“{query}”共检索到 {count} 个段落（模式：{mode}），按相关度排列。",
    "role": "{role}",
    "graph": "知识图谱",
    "record": "对象",
    "job": "任务",
    "file": "文件",
    "where": "{path} · 相关度 {score} · 页面更新于 {day}",
    "before": "开始之前",
    "steps": "操作步骤",
    "open": "打开 **{page}**。",
    "settings": "| 配置项 | 默认值 | 取值范围 | 起始版本 | 含义 |",
    "rights": "| 角色 | 查看全部 | 查看本人 | 新建 | 修改 | 删除 |",
    "marks": "是|否|需申请",
    "trouble": "**{code} · {symptom}**\n\n- 原因：{cause}。\n- 处理：{remedy}。",
    "version": "{version} 版（{day}）",
    "entities": "| 实体 | 类型 | 描述 |",
    "relations": "| 起点 | 终点 | 关系 |",
    "new_default": "`{key}` 的默认值由 {old} 调整为 {new}。",
    "date": "{year} 年 {month} 月 {day} 日",
    "date_also": "{year}年{month}月{day}日|{month} 月 {day} 日|{month}月{day}日",
    "months": "1|2|3|4|5|6|7|8|9|10|11|12",
    "ordinals": "第一|第二|第三|第四|第五|第六|第七",
    "days": "天",
    "tool": "检索产品文档，返回相关段落及其路径。",
    "tool_query": "关键词或简短的问题",
    "tool_mode": "local：单一主题；naive：精确的配置项和错误码；mix：跨章节并带知识图谱",
    "tool_top_k": "参与召回的段落数",
}

_ASPECTS = (
    Aspect(
        "retention_days",
        "record file",
        (30, 45, 60, 90, 120, 180, 270, 365, 400, 540, 730),
        "天",
        ("{things}在清理前保留的天数", "{things}达到该天数后由 `{job}` 清理"),
        "{things}在清理之前保留多少天？",
        "{things}在清理之前保留 {value}",
        "保留天数",
    ),
    Aspect(
        "max_per_workspace",
        "record",
        (50, 75, 120, 200, 250, 300, 450, 600, 800, 1200, 1500, 2500),
        "个",
        ("单个工作区内{things}的数量上限", "每个工作区允许的{things}数量，超出需{role}批准"),
        "一个工作区最多允许多少个{things}？",
        "一个工作区最多允许 {value}{things}",
        "数量上限",
    ),
    Aspect(
        "restore_hours",
        "record",
        (12, 18, 24, 36, 48, 60, 72, 96, 120, 168),
        "小时",
        ("删除{things}后仍可恢复的小时数", "{role}可以找回已删{things}的时限"),
        "删除的{things}在多少小时内可以恢复？",
        "删除的{things}在 {value}内可以恢复",
        "恢复时限",
    ),
    Aspect(
        "cache_minutes",
        "record",
        (2, 5, 8, 10, 15, 20, 30, 45, 60, 90),
        "分钟",
        ("{things}从缓存返回的分钟数", "缓存中的{things}超过该时间后重新读取"),
        "{things}的缓存有效多少分钟？",
        "{things}的缓存有效 {value}",
        "缓存时间",
    ),
    Aspect(
        "review_days",
        "record",
        (30, 60, 90, 120, 150, 180, 270, 365),
        "天",
        ("{role}必须复核{things}的间隔天数", "{things}进入复核名单的周期"),
        "{things}每隔多少天需要复核一次？",
        "{things}每隔 {value}需要复核一次",
        "复核周期",
    ),
    Aspect(
        "timeout_minutes",
        "job",
        (4, 6, 10, 15, 25, 30, 40, 60, 75, 90, 120),
        "分钟",
        ("{things}运行超过该分钟数即被终止", "在 `{host}` 等节点上允许{things}运行的时长"),
        "{things}运行多少分钟后会被终止？",
        "{things}运行 {value}后会被终止",
        "超时时间",
    ),
    Aspect(
        "batch_size",
        "job",
        (50, 100, 150, 200, 250, 400, 500, 750, 1000, 2000),
        "条",
        ("{things}一次处理的条数", "{things}单个事务的大小"),
        "{things}一批处理多少条档案？",
        "{things}一批处理 {value}档案",
        "批大小",
    ),
    Aspect(
        "retry_limit",
        "job",
        (2, 3, 4, 5, 6, 7, 8, 9, 10, 12),
        "次",
        ("{things}放弃之前的尝试次数", "{things}失败达到该次数后通知{role}"),
        "{things}失败多少次之后不再重试？",
        "{things}失败 {value}之后不再重试",
        "重试次数",
    ),
    Aspect(
        "retry_delay_seconds",
        "job",
        (15, 20, 30, 45, 60, 90, 120, 150, 180, 300),
        "秒",
        ("{things}再次尝试前的等待秒数", "同一{thing}两次尝试的间隔"),
        "{things}失败后隔多少秒重试？",
        "{things}失败后隔 {value}重试",
        "重试间隔",
    ),
    Aspect(
        "history_days",
        "job",
        (14, 21, 28, 30, 45, 60, 75, 90, 100, 150),
        "天",
        ("{things}的结果在列表中保留的天数", "已结束的{things}达到该天数后移出列表"),
        "已结束的{things}在列表里保留多少天？",
        "已结束的{things}在列表里保留 {value}",
        "历史保留",
    ),
    Aspect(
        "max_size_mb",
        "file",
        (16, 25, 32, 48, 64, 80, 100, 150, 200, 256, 320, 512),
        "MB",
        ("{things}的大小上限，超出则拆分", "超过该大小的{things}会被 `{host}` 拒绝"),
        "单个{thing}最大多少 MB？",
        "单个{thing}最大 {value}",
        "大小上限",
    ),
    Aspect(
        "keep_versions",
        "file",
        (3, 4, 5, 6, 7, 8, 10, 12, 15, 20),
        "个",
        ("每个{thing}保留的历史版本数", "除当前版本外保留的旧{thing}数量"),
        "每个{thing}保留多少个历史版本？",
        "每个{thing}保留 {value}历史版本",
        "历史版本",
    ),
    Aspect(
        "link_hours",
        "file",
        (4, 6, 8, 12, 16, 24, 36, 48, 72, 96),
        "小时",
        ("{things}下载链接的有效小时数", "{role}发出的{thing}链接的有效期"),
        "{things}的下载链接多少小时内有效？",
        "{things}的下载链接 {value}内有效",
        "链接有效期",
    ),
)


def _thing(name: str, kind: Kind) -> Thing:
    called, slug = name.split("/")
    return Thing(called, called, slug, kind)


def pack() -> Pack:
    """All of it."""
    text = zh_content.CHAPTERS + zh_operation.CHAPTERS
    return Pack("zh", chapters(text, _thing, ""), _ASPECTS, _NAMES, {**PAGES, **TALK}, _LABELS, _SYSTEM, "", 1)
