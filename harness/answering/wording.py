"""What a model is asked: the question comes last, so that what stands before it can stay in a prompt cache."""

from __future__ import annotations

import re
from hashlib import sha256

from ...metrics.language import language_of
from .answerer import UNKNOWN

_EN = """Answer this question about the conversation above.

Question: {question}

Give only the answer, in as few words as possible: a name, a number with its unit, a date, a short phrase. Write dates \
in full, not as "yesterday". Where something changed, the newest statement counts, unless the question asks for an \
older one. If the conversation does not say, answer UNKNOWN."""
_ZH = """请根据上面的对话回答这个问题。

问题：{question}

只给出答案，越短越好：一个名字、带单位的数字、日期或短语。日期要写完整，不要写“昨天”。内容有变动时以最新的说法为准，除非问题问的是之前的。\
如果对话里没有提到，请回答 UNKNOWN。"""

NOT_AVAILABLE = "This tool is not available now. Answer from what is above; if it does not say, answer UNKNOWN."
"""What a model is told that calls a tool of the recorded agent."""

PROMPT = f"answer@{sha256((_EN + _ZH + NOT_AVAILABLE).encode()).hexdigest()[:12]}"
"""Which prompt it is: recorded answers to another are told from it."""

_UNKNOWN = re.compile(r"\W*(?:answer\W+)?(?:unknown|未知)\W*", re.IGNORECASE)


def instruction(question: str) -> str:
    """The last user message, in the language of the question."""
    return (_ZH if language_of(question) == "zh" else _EN).replace("{question}", question)


def cleaned(text: str) -> str:
    """An answer without white space around it; UNKNOWN however it is written."""
    return UNKNOWN if _UNKNOWN.fullmatch(text) else text.strip()
