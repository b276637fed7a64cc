"""The words of the archive: placeholder (design document 001 §3.2), tool (§3.5), addition to the system prompt (§4.2).

The Chinese is the document's; the English beside it says the same. The summariser's prompt, the headings of what is
loaded and what `load_tool_history` answers when it has nothing are ours: the document has none.
"""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from typing import Literal, NamedTuple

from ...scenarios.model import Tool
from .record import Card

Language = Literal["zh", "en"]

_LINE = "━" * 37


class Wording(NamedTuple):
    """One language's."""

    placeholder: str
    """`{sources_part}` is empty where no source was found, `{hint}` where the tool is not offered."""
    sources: str
    hint: str
    unknown_time: str
    note: str
    description: str
    uuid: str
    part: str
    recalled: str
    not_found: str
    unreadable: str
    not_loaded: str
    prompt: str


_ZH = Wording(
    placeholder=f"""📎 [工具结果存档: {{uuid}}]
{_LINE}
工具: {{tool_name}}
查询: {{query_summary}}
时间: {{timestamp}}
原始长度: {{original_length}}字
{_LINE}
内容摘要:
{{summary}}
{{sources_part}}{_LINE}{{hint}}""",
    sources="\n主要来源:\n",
    hint='\n如需查看完整内容，请调用 load_tool_history(uuid="{uuid}")',
    unknown_time="未知",
    note="""## 历史工具结果管理

对话中可能包含已存档的工具结果（显示为占位符格式）。
当用户询问之前讨论过的细节时，你可以调用 `load_tool_history` 加载完整内容。

判断依据：
- 用户明确提到"之前"、"刚才说的"、"上次"
- 用户追问之前回答中的具体细节
- 占位符中的摘要不足以回答用户问题""",
    description="""加载之前工具调用的完整结果。

使用场景：
- 用户询问之前讨论过的细节
- 需要回顾历史检索内容
- 用户说"之前"、"刚才"、"上次说的"等

注意：只在确实需要历史详情时调用，避免不必要的加载。""",
    uuid="要加载的工具结果 UUID（从占位符中获取）",
    part="📎 [工具结果存档: {uuid}] 节选，原始长度: {length}字\n",
    recalled="📎 [其他会话的工具结果存档: {uuid}] 工具: {tool}，查询: {query}\n",
    not_found="没有找到 uuid 为 {uuid} 的存档。请使用占位符中显示的 uuid。",
    unreadable='参数无法读取。请这样调用: load_tool_history(uuid="...")，uuid 从占位符中获取。',
    not_loaded="存档 {uuid} 暂时无法读取: {why}",
    prompt="""请用不超过{characters}字概括下面的工具返回结果，保留数字、名称、标识符和结论，只输出摘要。

{conversation}""",
)

_EN = Wording(
    placeholder=f"""📎 [Archived tool result: {{uuid}}]
{_LINE}
Tool: {{tool_name}}
Query: {{query_summary}}
Time: {{timestamp}}
Original length: {{original_length}} characters
{_LINE}
Summary:
{{summary}}
{{sources_part}}{_LINE}{{hint}}""",
    sources="\nMain sources:\n",
    hint='\nTo see all of it, call load_tool_history(uuid="{uuid}")',
    unknown_time="unknown",
    note="""## Archived tool results

The conversation may contain archived tool results, which are shown as placeholders.
When the user asks about details that were discussed earlier, you can call `load_tool_history` to load all of one.

Load one if:
- the user says "before", "earlier", "you said", "last time"
- the user asks about details of an earlier answer
- the summary in the placeholder is not enough to answer""",
    description="""Load the complete result of an earlier tool call.

When to use it:
- the user asks about details that were discussed earlier
- you need to look again at what was retrieved before
- the user says "before", "earlier", "last time" or the like

Only call it when the details are really needed.""",
    uuid="The UUID of the tool result to load (it is in the placeholder)",
    part="📎 [Archived tool result: {uuid}] excerpts, original length: {length} characters\n",
    recalled="📎 [Archived tool result of another conversation: {uuid}] Tool: {tool}, query: {query}\n",
    not_found="There is no archived result with the uuid {uuid}. Use a uuid that is shown in a placeholder.",
    unreadable='The arguments cannot be read. Call load_tool_history(uuid="..."), with a uuid from a placeholder.',
    not_loaded="The archived result {uuid} cannot be read now: {why}",
    prompt="""Summarise the following tool result in at most {characters} characters. Keep numbers, names, identifiers \
and conclusions. Write the summary only.

{conversation}""",
)

WORDING: dict[Language, Wording] = {"zh": _ZH, "en": _EN}

TOOL = "load_tool_history"

_UUID = "[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"


def _pattern(said: Wording) -> re.Pattern[str]:
    """What a placeholder of this wording looks like, from its first character to its last."""
    parts = {
        "uuid": f"(?P<uuid>{_UUID})",
        "original_length": "[0-9]+",
        "sources_part": "(?s:.*)",  # the only field of several lines
        "hint": f"(?:{re.escape(said.hint).replace(re.escape('{uuid}'), '(?P=uuid)')})?",
    }
    fields = re.compile(r"\{([a-z_]+)\}")
    pieces = fields.split(said.placeholder)  # text, field, text, …
    return re.compile(
        "".join(parts.get(each, r"[^\n]*") if at % 2 else re.escape(each) for at, each in enumerate(pieces))
    )


_PLACEHOLDERS = tuple(map(_pattern, WORDING.values()))


def tool(language: Language) -> Tool:
    """The tool that the model is offered, with the document's schema."""
    said = WORDING[language]
    schema = {
        "type": "object",
        "properties": {"uuid": {"type": "string", "description": said.uuid}},
        "required": ["uuid"],
    }
    return Tool(TOOL, said.description, json.dumps(schema, ensure_ascii=False))


def placeholder(card: Card, summary: str, language: Language, offered: bool) -> str:
    """What stands for an archived result. Where the tool is not offered, the last line, which names it, is left out."""
    said = WORDING[language]
    listed = "".join(f"- {source}\n" for source in card.sources)
    return said.placeholder.format(
        uuid=card.uuid,
        tool_name=card.tool,
        query_summary=card.query,
        timestamp=_shown(card.created) or said.unknown_time,
        original_length=card.length,
        summary=summary,
        sources_part=said.sources + listed if listed else "",
        hint=said.hint.format(uuid=card.uuid) if offered else "",
    )


def is_placeholder(text: str) -> bool:
    """Whether a text is an archived result's placeholder, in any language, with or without the line of the tool."""
    return text.startswith("📎") and any(each.fullmatch(text) for each in _PLACEHOLDERS)


def _shown(seconds: float | None) -> str:
    """A moment of the recorded clock, in UTC."""
    if seconds is None:
        return ""
    try:
        return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S}"
    except (OverflowError, ValueError, OSError):
        return ""
