"""Sentences of the docstrings and comments in the coding scenario's invented Python; slots as in `methods`."""

from __future__ import annotations

DOCS = (
    "«Keeps|Looks after|Answers for» the ${ent_word}s «between $state and $state2|that the $other_word "
    "side sends|of one "
    "$text», «one process at a time|for all callers»",
    "«Everything|All» that «happens to|is decided about» a $ent_word «on its way|once it is $state», "
    "«apart from|except "
    "for» its $other_word",
    "«Stands|Sits» between the $other_word service and «whoever asks|everybody who asks» for "
    "${ent_word}s, «and remembers|"
    "remembering» $num «for a while|as long as needed»",
    "«The one place|Where we» «that changes|change» the $num of a $ent_word; «others only read it|the $other_word asks "
    "here first»",
)
"""What a class says of itself, without the full stop."""

DOC_TAILS = (
    "«Rows|Entries|Those» without $text are «left out|kept as they are|put last».",
    "The caller «holds|must hold|need not hold» the lease of the $other_word.",
    "Raises $Err when the $ent_word is «$state|$state2|locked elsewhere».",
    "Safe to «repeat|call twice|run again»: «a second|the next» call «changes nothing|sees the same $num».",
    "Takes «about|some» «$small ms|$small µs» for a «typical|full|busy» $other_word.",
    "$Num is in the unit of the $other_word, «not of the $ent_word|as everywhere here|see the runbook».",
    "See «$ticket|the notes in $ticket|$runbook» «for the reason|for how it came to this|before changing it».",
)
"""Further docstring sentences."""

NOTES = (
    "«the partner|the $other_word side|the old client» «sends|repeats|counts» $num «twice|late|from one» "
    "«after a restart|on month ends|when $state»",
    "«keep|leave» this «order|check|line»: «$ticket|the audit|the $other_word job» «depends on it|reads it back|broke "
    "without it»",
    "«cheaper|simpler|safer» than «asking the $other_word|a second pass|sorting by $num»",
    "«a $state $ent_word|an empty $text|zero $num» is «legal|fine|normal» here, «see $ticket|$runbook says so|unlike "
    "in the $other_word»",
    "«$who wanted|we agreed on|$ticket asked for» this «in $year|before the $release release|for the $other_word»",
    "«not|never» «$state2|negative|shared» at this point: «the lease|the caller|the validator» «sees to it|checked»",
)
"""Comments, English."""

NOTES_ZH = (
    "«对方|$other_zh那边|旧版客户端»«重启后|月底|超时后»«会重复发送|可能晚到|从一开始计» $num",
    "«顺序不能换|这一行不要删|先别优化»：«$ticket 依赖它|审计要读|$other_zh任务会用到»",
    "比«再查一次$other_zh|多扫一遍|按 $num 排序»«便宜|简单|稳妥»",
    "$text 为空«是合法的|属于正常情况|不算错»，«见 $ticket|参考 $runbook|和$other_zh不同»",
    "«$who_zh 要求|大家商定|$ticket 里定的»，«$release 版之前加上|$year 年起生效|为了$other_zh»",
    "走到这里$ent_zh«不会是 $state2|一定持有租约|已经校验过»，«调用方保证|校验器已检查»",
)
"""Comments, Chinese."""
