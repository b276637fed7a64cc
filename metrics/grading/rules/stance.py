"""What an answer does beside naming things: it refuses, doubts, says yes or no, denies. In English and Chinese."""

from __future__ import annotations

import re
from typing import Literal

Polarity = Literal["yes", "no"]

_REFUSAL = re.compile(
    r"\b(?:i (?:do not|don't|did not|didn't|cannot|can't|could not|couldn't|am not able to|am unable to|'m unable to"
    r"|was unable to|'m not able to|am not sure|'m not sure|have no (?:information|knowledge|record|way|idea))"
    r"|(?:i'm|i am) (?:sorry|afraid)|unable to (?:find|determine|answer|provide|confirm|verify)"
    r"|(?:do not|don't|does not|doesn't) have (?:access|(?:any |enough |sufficient |specific |that )*(?:information"
    r"|data|details|record))"
    r"|no (?:specific |relevant |further |such )?(?:information|mention|record|data|answer|evidence|details?)\b"
    r"|(?:is|was|are|were|has|have)(?: not|n't)(?: been)?(?: \w+)? (?:mentioned|specified|stated|provided|given"
    r"|known|available"
    r"|disclosed|announced|discussed|recorded|found|determined|included|established|clear)"
    r"|not (?:enough|sufficient) (?:information|context|evidence)|insufficient information"
    r"|(?:does|do|did)(?: not|n't) (?:mention|say|specify|state|provide|contain|know|appear|include|record|indicate"
    r"|exist)"
    r"|cannot be (?:determined|answered|found|known)|can't be (?:determined|answered|found)"
    r"|(?:is|are|remains?) (?:unknown|unclear|unspecified|uncertain)|^(?:unknown|n/a|none|no idea|not sure|unclear"
    r"|not (?:known|mentioned|specified|stated|available|provided|applicable|given|found|sure))\b|never (?:mentioned"
    r"|said|stated|specified)"
    r"|it (?:is|would be) (?:impossible|not possible|too early|difficult)|please (?:check|provide|specify|clarify)"
    r"|as an ai\b|more (?:context|information|specific)|(?:could|can) you (?:please )?(?:provide|clarify|specify"
    r"|rephrase))",
)
_ZH_REFUSAL = re.compile(
    r"不知道|不清楚|不确定|不了解|不详|未知|不明|无法(?:回答|确定|得知|判断|知道|提供|获取|给出|确认|准确|预测|告诉"
    r"|得出|查|找|证)"
    r"|(?:没有|没|未|并未|从未|未曾)(?:有)?(?:被)?(?:任何|明确|具体|足够|相关|提供|公布|准确|确切|固定|统一|标准"
    r"|唯一)?(?:的)?"
    r"(?:提到|提及|提供|说明|说过|记录|记载|信息|给出|资料|数据|公布|确定|透露|答案|定论|证据|证实|谈到|讲过)"
    r"|难以(?:确定|回答|判断)|不(?:能|可能)(?:确定|回答|得知|判断)|没法(?:回答|确定)|暂无|抱歉|对不起|查不到|找不到"
    r"|无从|未解之谜"
)
_DENIAL = re.compile(
    r"\b(?:not|no|never|nor|neither|isn't|wasn't|aren't|weren't|doesn't|don't|didn't|won't|cannot|can't|couldn't|hasn't"
    r"|haven't|without|except|excluding|unlike|rather than|instead of|contrary to|other than|far from|hardly|false that"
    r"|incorrect|mistakenly|myth)\b[^.;!?,()\"]{0,24}$"
)
_ONLY = re.compile(
    r"(?:\b(?:not|n't) (?:only|just|merely|until|before|later than|sure|exceed)|\b(?:no|not) (?:later|earlier|fewer"
    r"|less|more) than"
    r"|n't until|\bnot\b[^.;!?]* but\b|\bno\. ?\d*)[^.;!?]{0,24}$"
)
_AFTER = re.compile(
    r"^[\s\"')]{0,2}(?:is|are|was|were|did|does|do|has|have|had|would|will|could|can)(?:n't| not| never)\b(?! only"
    r"| just)"
)
_ZH_DENIAL = re.compile(
    r"(?:不是|并非|并不是|没有|不会|不在|不叫|不属于|未|而非|非|而不是|绝非|除了|不)[^，。；！？,.;]{0,6}$"
)
_ZH_FINE = re.compile(
    r"(?:不仅|不只|不但|不过|不止|不同|不久|不断|不得不|除了|无不|是不是|不晚于|不少于)[^，。；！？,.;]{0,6}$"
)
_PAST = re.compile(
    r"(?:\b(?:used to|formerly|previously|originally|once|was|were)\b|(?:changed|moved|switched) from)[^.;!?]{0,40}$"
)
_THEN = re.compile(
    r"^[^.;!?]{0,40}\b(?:but|and|then|now)\b[^.;!?]{0,30}\b(?:now|today|currently|nowadays|these days)\b"
)
_ZH_PAST = re.compile(r"(?:从|由|原来|之前|以前|本来|原先|曾经|曾|起初|最初)[^，。；,.;]{0,6}$")
_ZH_THEN = re.compile(r"^[^，。；,.;]{0,8}(?:迁|搬|换|改|移|调|变|转)|^[^。；.;]{0,12}(?:现在|如今|目前|后来)")
_YES = re.compile(
    r"^(?:[\"'*( ]*)(?:yes|yeah|yep|yup|correct|indeed|true|certainly|absolutely|definitely|of course|sure|right"
    r"|affirmative"
    r"|(?:most |very )?(?:likely|probably)(?! (?:no\b|not\b))(?: yes)?|是的|是|对的|对|没错|可以|能够|能|会的|会"
    r"|有的|有|正确|当然|应该是|好的|确实)"
    r"(?![a-z\u4e00-\u9fff])"
)
_NO = re.compile(
    r"^(?:[\"'*( ]*)(?:no|nope|nah|not|never|false|incorrect|wrong|negative|unlikely"
    r"|(?:most |very )?(?:likely|probably) (?:no|not)|不是的?|不对|不可以|不能够?|不会的?|没有的?|没|错误?|不行|并非"
    r"|并不是|不|否|无|不正确)"
    r"(?![a-z])"
)
_ZH_NO = re.compile(
    r"不一定|不是|并不|不会|不能|不可以|没有|并非|不对|无法|不存在|不属于|错误|不应|不需|不行|不可能|不正确|不要"
    r"|不在|不属|不需|未|无"
)
_EN_NO = re.compile(r"\b(?:not|no|never|cannot|none|neither|nor|unlikely|false|incorrect)\b|n't\b")
_YES_NO = re.compile(
    r"^(?:is|are|was|were|am|do|does|did|has|have|had|can|could|will|would|should|shall|may|might|must)\b"
)
_ZH_YES_NO = re.compile(
    r"(?:吗|(?<![什怎多那这])么[?.]?\s*$|是不是|是否|能不能|可不可以|会不会|有没有|对不对|能否|可否|有无)"
)


def refuses(lower: str) -> int:
    """Where an answer says that it does not know; -1 if it does not say so."""
    found = _REFUSAL.search(lower)
    if found is None and not lower.isascii():
        found = _ZH_REFUSAL.search(lower)
    return -1 if found is None else found.start()


def superseded(lower: str, start: int, stop: int) -> bool:
    """Whether what stands from start to stop was so and is so no more: "it was Paris, but is Rome now"."""
    before, after = lower[max(0, start - 56) : start], lower[stop : stop + 90]
    if _PAST.search(before) and _THEN.search(after):
        return True
    return not lower.isascii() and _ZH_PAST.search(before) is not None and _ZH_THEN.search(after) is not None


def denied(lower: str, start: int, stop: int) -> bool:
    """Whether what stands from start to stop is denied where it stands: "not Paris", "Paris is not", 不是巴黎."""
    before = lower[max(0, start - 44) : start]
    if _DENIAL.search(before) and not _ONLY.search(before):
        return True
    if _AFTER.match(lower[stop : stop + 24]):
        return True
    if lower.isascii():
        return False
    return _ZH_DENIAL.search(before) is not None and _ZH_FINE.search(before) is None


def polarity(lower: str) -> Polarity | None:
    """Whether an answer begins with yes or no, in so many words."""
    start = lower.lstrip()[:40]
    if _NO.match(start):
        return "no"
    return "yes" if _YES.match(start) else None


def leaning(sentence: str) -> Polarity | None:
    """Yes or no, if only because the sentence denies something; None where nothing tells."""
    said = polarity(sentence)
    return said if said is not None else "no" if negates(sentence) else None


def negates(lower: str) -> bool:
    """Whether a text denies anything."""
    if _EN_NO.search(lower):
        return True
    return not lower.isascii() and _ZH_NO.search(lower) is not None


def asks_yes_or_no(question: str) -> bool:
    """Whether a question can be answered by yes or no."""
    lower = question.strip().lower()
    if _ZH_YES_NO.search(lower):
        return True
    return _YES_NO.match(lower) is not None and " or " not in lower


_ADDRESS = re.compile(
    r"\b(?:grader|graders|grading|rubrics?|verdict|scoring|jailbreak|prompt injection)\b"
    r"|\b(?:ignore|disregard|forget|override|bypass)\b.{0,30}\b(?:instructions?|rules?|criteria|guidelines|prompts?"
    r"|above|previous|everything)\b"
    r"|\b(?:mark|grade|rate|score|judge|label|treat|accept|count)\b.{0,20}\b(?:this|it|me|answer|response"
    r"|candidate)\b.{0,20}"
    r"\b(?:correct|right|wrong|incorrect|true|pass|passed|full|valid|accepted)\b"
    r"|\b(?:mark|grade|label|score|rate) (?:as|it|this)\b|\bfinal (?:grade|score|verdict)\b|\b(?:score|grade"
    r"|rating)\"?\s*[:=]\s*[\"\d]"
    r"|\b(?:this|the|my|that|above) (?:answer|response|candidate)(?: above)? (?:is|was|matches|must be|should be"
    r"|deserves|equals|agrees)\b"
    r"|\b(?:gold|accepted|reference|expected|golden) answers?\b|\banswer(?:s|ed|ing)? (?:correct|wrong|incorrect)\b"
    r"|^\W*(?:in)?correct\W*$"
    r"|<\|?/?\s*(?:im_start|im_end|system|assistant|user|candidate|answer|end|inst|s)\b|\[/?inst\]|\[\[|\"(?:verdict"
    r"|correct|label|is_correct)\"\s*:"
    r"|^\W*(?:system|assistant|human|user|developer)\s*:|^#+\s*(?:system|assistant|human|user|instruction|response)\b"
    r"|评分|评判|判分|打分|判定|判为|判断为|裁判|阅卷|(?:忽略|无视|不要理会|不用管|忘记|绕过).{0,12}(?:标准|指令"
    r"|规则|要求|提示|以上|前面|上述)"
    r"|标准答案|参考答案|(?:本|此|该|这个|上述|以上)(?:回答|答案)(?:是|为|完全|应)|^\W*(?:正确|错误|不正确)\W*$|满分"
    r"|给(?:我|这个|它).{0,6}分"
)
_PARTS = re.compile(r"(?<=[.!?。！？;；}>\]])\s+|\n+|(?<=[。！？；])|(?=<\|)|(?=\{\s*\")")


def without_address(text: str) -> str:
    """The text without the parts that speak to a grader; all of it if nothing else is there."""
    parts = [part for part in _PARTS.split(text) if part.strip()]
    kept = [part for part in parts if not _ADDRESS.search(part.lower())]
    return "\n".join(kept) if 0 < len(kept) < len(parts) else text
