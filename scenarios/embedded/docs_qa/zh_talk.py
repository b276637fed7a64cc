"""How the user asks and the assistant answers in docs_qa, in Chinese."""

from __future__ import annotations

TALK: dict[str, tuple[str, ...]] = {
    "ask_setting": (
        "{question}交接单上要写默认值，最好带上配置项的名字。",
        "{person}问：{question}麻烦把配置项也给我。",
        "{question}{site}的配置改过太多次，已经没人知道原来是多少了。",
        "清单上的下一项：{question}",
        "审计问卷里有这么一条：{question}能给出页面路径最好。",
        "{question}我在 {page} 里没找到。",
        "换个话题，关于{area}：{question}{site}那边等着要。",
        "再问个简单的：{question}",
        "趁我还记得，{question}{person}坚持说以前没这么高。",
    ),
    "answer_setting": (
        "默认情况下，{statement}（`{key}`，{path}）。\n\n{note}",
        "{value_bold}。{statement}，配置项是 `{key}`，页面是 {path}。\n\n{note}",
        "参考手册写的是：{statement}。这是 `{key}` 的默认值（{path}）。{note}",
        "根据 {path}，{statement}，前提是没人改过 `{key}`。\n\n另外提醒：{note}",
    ),
    "again": (
        "第一次检索到了相关章节，但没有确切的那一段，我再查一次。",
        "背景已经清楚了，再查一下具体的段落。",
        "还缺具体的那一行，我再看看相邻的页面。",
    ),
    "look": ("", "", "我查一下文档。", "稍等，我检索一下。", "这个要看文档，稍等。"),
    "ask_procedure": (
        "怎样{goal}？请一步一步列出来。",
        "{site}的{person}想{goal}，具体该做哪些事，先后顺序是什么？",
        "请列一下{goal}的步骤，我要贴到工单里。",
        "这周之内我们得{goal}，在{product}里怎么操作？",
        "我从来没做过这个：{goal}。能带我走一遍吗？",
    ),
    "answer_procedure": (
        "要{goal}，步骤如下（{path}）：\n\n{list}\n\n{note}",
        "文档在 {path} 里有说明。要{goal}，请依次操作：\n\n{list}\n\n补充一点：{note}",
        "可以这样{goal}：\n\n{list}\n\n出处：{path}。{note}",
    ),
    "ask_step": (
        "回到“{goal}”那个话题，{person}卡在你之前列的{ordinal}步了，那一步是什么来着？",
        "你之前给过“{goal}”的步骤，能把{ordinal}步再说一遍吗？有什么要注意的？",
        "关于“{goal}”，你列的{ordinal}步具体要做什么？",
    ),
    "answer_step": (
        "第 {number} 步是：{step}\n\n注意事项：{note}",
        "之前列出的{ordinal}步原文是：{step}{note}",
        "就是这一步：{step}\n\n它紧接在第 {before} 步之后。{note}",
    ),
    "ask_pair": (
        "同一张表里要填两个数：{question}还有，{question2}",
        "我要对比两个配置。{question}另外，{question2}",
        "{question}顺便再查一个：{question2}两个并排给我就行。",
    ),
    "answer_pair": (
        "对照如下：\n\n- {statement}（`{key}`，{path}）。\n- {statement2}（`{key2}`，{path2}）。",
        "两个都是参考手册里的默认值：{statement}（`{key}`）；{statement2}（`{key2}`）。页面分别是 {path} 和 {path2}。",
    ),
    "ask_since": (
        "`{key}` 这个配置项是从哪个版本开始有的？{site}还在用旧版本。",
        "{person}在老集群上找不到 `{key}`，它是哪个版本加进来的？",
        "`{key}` 是一直都有，还是后来某个版本才有的？",
    ),
    "answer_since": (
        "`{key}` 是 {version} 版引入的（{path}），更早的版本会忽略配置文件里的这一行。",
        "从 {version} 版开始有。{path} 的“起始版本”一列里 `{key}` 对应的就是它。",
    ),
    "ask_release": (
        "那 {version} 版是什么时候发布的？合同里要写日期。",
        "好的，{version} 版的发布日期是哪天？",
        "顺便告诉我 {version} 版是哪天出的。",
    ),
    "answer_release": (
        "{version} 版发布于 {date}（变更列表中写作 {day}，见 {path}）。",
        "根据 {path}，是 {date}，{version} 版标注的日期为 {day}。",
    ),
    "ask_trouble": (
        "{host} 这会儿一直报 {code}，是什么意思，该怎么处理？",
        "{site}的{team}反馈了报错 {code}，文档里有相关内容吗？",
        "{code} 是什么？过去一小时出现了 {n} 次，大多和{things}有关。",
        "刚接到{person}的电话，日志里有 {code}，用户在投诉，帮忙看看！",
    ),
    "answer_trouble": (
        "{code} 对应的现象是：{symptom}。\n\n原因：{cause}。\n处理办法：{remedy}。\n\n{note}",
        "{path} 中 {code} 的说明是“{symptom}”。原因在于{cause}；处理办法是{remedy}。{note}",
    ),
    "ask_own": (
        "先记一下：{site}把 `{key}` 设成了 {own}。这个值在范围内吗？会影响什么？",
        "{site}从今天起 `{key}` 用 {own}，文档里有没有反对的说法？",
        "我们动过 `{key}`，{site}现在是 {own}，这样合理吗？",
    ),
    "answer_own": (
        "已记录：{site}的 `{key}` 为 {own}，文档默认值是 {value}（{path}）。{note}",
        "之后谈到{site}，我会按 `{key}` 等于 {own}来回答；默认值是 {value}，见 {path}。{note}",
    ),
    "ask_own_new": (
        "更正一下，{site}的 `{key}` 现在是 {own}，上次出事之后{team}又改了。",
        "{site}的 `{key}` 请忘掉之前那个数，我们改成 {own}了。",
        "有个小变动：{site}刚把 `{key}` 调成 {own}，原来的值有人投诉。",
    ),
    "answer_own_new": (
        "明白，{site}的 `{key}` 由 {old}改为 {own}，之后我都按 {own}来回答。",
        "已更新：{site}的 `{key}` 是 {own}（之前是 {old}），文档里的默认值不受影响。",
    ),
    "ask_plan": (
        "我们把{site}的{occasion}定在 {date}，{area}这一块要提前准备什么？",
        "请记住：{site}的{occasion}安排在 {date}。哪些{things}会受影响？",
    ),
    "answer_plan": (
        "已记下，{site}的{occasion}在 {date}。文档（{path}）要求事先确认：\n\n{note}",
        "{date}，{site}，{occasion}，记下了。{path} 建议提前做到：{note}",
    ),
    "ask_plan_new": (
        "{site}的{occasion}改到 {date}了，在那之前{person}休假。",
        "计划有变：{site}的{occasion}改在 {date}，不是我之前说的那天。",
    ),
    "answer_plan_new": (
        "好的，{site}的{occasion}由 {old}改为 {date}，准备事项不变。",
        "已调整：{site}，{occasion}，{date}（原定 {old}）。",
    ),
    "ask_news": (
        "{company}今天发布了 {version} 版，`{key}` 的默认值有变化吗？",
        "{version} 版刚刚发布，请看看说明里有没有提到 `{key}`。",
    ),
    "answer_news": (
        "有变化。从 {version} 版起，`{key}` 的默认值由 {old}改为 {value}（{path}）。{note}",
        "改了：`{key}` 之前是 {old}，从 {version} 版开始是 {value}，见 {path}。{note}",
    ),
    "ask_value": (
        "之前查的 `{key}` 是多少来着？我把窗口关了。",
        "提醒我一下，你之前找到的 `{key}` 默认值是多少？",
        "`{key}` 之前那个数是多少？{person}说是它的两倍。",
    ),
    "answer_value": (
        "`{key}` 是 {value}，出自 {path}，到现在没有变过。",
        "之前我引用的 `{key}` 默认值是 {value}（{path}）。",
    ),
    "note": (
        "{role}可以按工作区单独修改，{seconds} 秒内对运行中的{things}生效。",
        "需要注意，已经在运行的{things}在 {minutes} 分钟之内仍按旧值处理。",
        "如果{site}与此不符，以 `{host}` 上的配置文件为准。",
        "页面还说明，{others}不受影响。",
        "如果之后{things}出现排队，用 `{cli}` 可以看到卡在哪里。",
        "受影响的{things}超过 {percent}% 时，{role}会收到邮件。",
        "稳妥的做法是先拿 {n} 个{thing}试一下，并告知{team}。",
        "文档提醒不要在 `{job}` 运行期间操作。",
        "如果牵涉其他站点的{others}，建议先问过{role}。",
        "不需要重启，节点会在 {seconds} 秒内自动读取。",
        "{things}超过 {hundreds} 个时，页面建议放到晚上进行。",
        "文档没有提到各站点之间有差别。",
    ),
    "step_note": (
        "下一步要用到它的结果，不要跳过。",
        "如果失败就停在这里并告知{team}，继续做下去更难回退。",
        "{things}较多时，请给这一步留出 {minutes} 分钟。",
        "只要期间没有动过{others}，重复执行也没有影响。",
        "没有{role}权限的人看不到这一步的按钮。",
    ),
    "query": ("{things} {aspect}", "{area} {things}", "{things}{aspect} 默认值", "{key} {things}"),
    "query_goal": ("如何{goal}", "{goal}", "{area} {goal}"),
    "probe_setting": ("按照文档的默认值，{question}", "助手查到的 `{key}` 默认值是多少？"),
    "probe_step": ("按照列出的步骤，要{goal}，首先打开哪个菜单页面？", "要{goal}，第一步打开的是哪个页面？"),
    "probe_trouble": ("“{symptom}”对应的错误码是什么？",),
    "probe_sum": ("`{key}` 与 `{key2}` 的默认值之和是多少？",),
    "probe_bridge": ("引入 `{key}` 的那个版本是哪一天发布的？",),
    "probe_release": ("{version} 版是什么时候发布的？",),
    "probe_first_date": ("{site}的{occasion}最初定在哪一天？",),
    "probe_moved": ("{site}的{occasion}推迟了多少天？",),
    "probe_own": ("{site}的 `{key}` 现在是多少？", "目前{site}把 `{key}` 设成了多少？"),
    "probe_plan": ("按最后一次约定，{site}的{occasion}在哪一天？",),
    "probe_news": ("在最新版本里，`{key}` 的默认值是多少？",),
    "probe_none": (
        "`{reserved}` 的默认值是多少？",
        "{product}从哪个版本开始支持 `{decoy}`？",
        "用户给{site}的 `{reserved}` 设了什么值？",
        "`{decoy}` 增值包每年的费用是多少？",
    ),
}
