"""What the person and the assistant say in the research scenario, Chinese. The keys are `speech_en`'s."""

from __future__ import annotations

SPEECH: dict[str, tuple[str, ...]] = {
    "system": (
        "你协助$who做一篇文献综述，主题是$question。你可以检索论文库、按编号打开论文，也可以记笔记，"
        "笔记会一直保留。\n\n"
        "- 每个判断都要有论文依据，写明作者和年份，并给出样本量和区间。\n"
        "- 研究之间有分歧时要说清楚，并说明可能的原因，不要简单取平均。\n"
        "- 综述标准和工作假设以最近一次商定的为准。\n"
        "- 需要回到之前的话题时，接上当时说过的内容。\n"
        "- 论文库里看不出来的，直接说明。",
    ),
    "explore": (
        "«接下来看|下面我想弄清|现在转到»$topic。«目前知道些什么？|前人有什么发现？|有没有靠得住的结论？»"
        "«我原以为$moderator最重要。|"
        "我的直觉是$moderator起决定作用，但手里没有数字。|有同事怀疑$moderator根本不起作用。»",
        "«换一个角度|还有一个没谈过的方面»：$topic。«先看看有哪些研究|请先大范围检索一下»，再把«最扎实|"
        "最好»的打开读一读。我最关心的是"
        "«样本量|$moderator的阈值|有没有对照»。",
        "$moderator«对$outcome有什么影响|和$outcome是什么关系»？«请找有对照的研究。|"
        "最好挑两项最好的研究通读。»«有矛盾的地方也请照实说。|»",
    ),
    "deeper": (
        "$topic这里«再停一下|我还想深入一点»。请打开$label：他们是怎么测的，«流失率如何|把握有多大»？",
        "$label«让我很感兴趣|我一直在琢磨»。«能不能通读一遍|请打开看看»，说说«效应从哪里来|分组结果怎么样»？",
    ),
    "disagree": (
        "关于$topic，$label和$second«好像对不上|读起来差别很大»。«为什么？|怎么解释？»«是样本、"
        "地点还是仪器的问题？|会不会是$moderator造成的？»",
        "«请把|能不能把»$label和$second放在一起比一比？«在$topic上两者似乎说法相反|"
        "我没法把两者在$topic上的结论统一起来»，"
        "«你更相信哪一个|差别到底出在哪里»？",
    ),
    "criterion_set": (
        "«继续之前|方案里有一点»要先定下来：$crit定为 $value$cunit。«合作者坚持这样。|别的数很难站住脚。|"
        "同类综述都是这么定的。»"
        "«请记下来，再看看对$topic意味着什么。|记一笔，并对照一下$topic。»",
    ),
    "criterion_change": (
        "$crit«要改一下|得调整»：«不用 $old$cunit 了，改成|由 $old$cunit 改为» $value$cunit。"
        "«原来的标准剩下的研究太少。|导师不太满意。|"
        "读了这些之后，旧标准说不通了。»«请更新笔记，再按新标准看看$topic。|这样一来，$topic的结论要变吗？»",
        "«方案要更正|我改主意了»：$crit«应为|改为» $value$cunit«，不再是 $old$cunit|»。«不然审稿人会问。|"
        "我又想了一晚。»"
        "«$topic里会剔除哪些？|请按这个标准重新检索$topic。»",
    ),
    "hypothesis_set": (
        "«可以提一个|我来试着提个»工作假设了：只有$moderator高于 $value $munit时，$outcome才会受影响。"
        "«先照这样记下来。|请写进笔记。»"
        "«有什么反面证据？|帮我找能推翻它的研究。»",
    ),
    "hypothesis_change": (
        "$old $munit这个界限«我不再相信了|应该放弃»。«假设改成|新的说法是»：只有$moderator高于 $value "
        "$munit时，$outcome才会变化。"
        "«请更新笔记|把改动记下来»，«正反两面的证据都找一找|再和已有的材料对照一下»。",
    ),
    "back": (
        "«回到|我们再回到|我想回到»$topic。«前面说过，这个话题主要靠$label支撑。|当时停在$label那里。|"
        "之前你说$label是最主要的研究。»"
        "«有没有更新或样本更大的|还有没有别的»研究«涉及$moderator|与它矛盾»？",
        "«前面谈到|之前聊过的»$topic«，已经隔了一阵|»，$label是最有分量的一项。«绕了一圈之后，"
        "我的看法有点变了。|照现在掌握的情况，这个判断还成立吗？»"
        "请再检索一次«，把$moderator也放进检索词|»，然后比较一下。",
    ),
    "searching": (
        "«先检索|我来查一下|找找»$topic。",
        "«先就$outcome大范围检索。|先查论文库里关于$outcome的研究。»",
        "«用$moderator检索一次。|先按$moderator查。»",
    ),
    "opening": ("«这两篇最扎实。|这两篇我通读一遍。|打开差别最大的两篇。»", "«有两篇值得细读。|两篇都该通读。»"),
    "opening_one": ("«打开|我来读»$label。", "$label«值得通读|应该细读»。"),
    "noting": ("«记下来。|做个笔记。|记一笔。»", "«留个记录。|免得忘了。|»"),
    "note_topic": (
        "$topic：$label（n = $n）«为主要研究|分量最重»；$moderator阈值约 $cut $munit；流失率 $dropout%。",
        "$topic«以|主要看»$label，n = $n，随访 $months 个月，«测量用|数据来自»$instrument。",
    ),
    "note_criterion": ("方案：$crit为 $value$cunit。", "已商定标准：$crit = $value$cunit。"),
    "note_hypothesis": ("假设：只有$moderator高于 $value $munit时，$outcome才受影响。",),
    "note_saved": ("第 $number 条笔记已保存，日期 $date。",),
    "answer_open": (
        "«简单说|先说结论»：关于$topic的证据«不多，但还能用|参差不齐|比我预想的好»，总体上«指向|倾向于»"
        "$moderator起作用«，但有例外|»。",
        "关于$topic，«我找到|库里有» $count 项«直接测量过的|有分量的»研究，下面几篇«我通读过|已全文读过»。",
        "«共有 $count 项研究|与此有关的研究有 $count 项»。«它们说法不一|总体比较混杂»，«所以逐篇来看|下面挑主要的说»。",
    ),
    "answer_paper": (
        "$label在$place«附近|一带»«跟踪了|研究了» $n $units，«历时 $months 个月|自 $start 年开始»，"
        "用的是$instrument。«先看结果|主要结果是»：$outcome比对照$lower "
        "$effect $unit，区间 $low 至 $high。«让我信服的是|它的优点在于»«有 $controls 个对照|"
        "读数时不知道分组»；«让我担心的是|不足在于»流失率有 "
        "$dropout%。$moderator«高于|达到» $cut $munit时为 $above $unit，低于时为 $below。",
        "«最有力的一项是|分量最重的是»$label：$sites 个站点，n = $n，随访 $months 个月。«报告的|得到的»"
        "$outcome差异为 $effect $unit（更$lower），p = $p。"
        "以$moderator $cut $munit为界，«差别比我预想的大|分化看来是真实的»：$above 对 $below $unit。"
        "«作者归因于|他们的解释是»$mechanism，"
        "«我认为说得通|不过方差的 $share% 来自站点之间»。",
    ),
    "answer_null": (
        "$label«给人泼了冷水|结论相反»：n = $n，随访 $months 个月，$outcome«没有超出 ±$spread $unit的变化|"
        "的差异都在 ±$spread $unit以内»（p = $p）。"
        "研究«规模足够|规模不大但很仔细»，用的是$instrument«，流失率 $dropout%|»。$place«附近|一带»的 "
        "$sites 个站点也许在阈值以下，可是$moderator超过 "
        "$cut $munit的«也没有效果|结果也一样»。",
    ),
    "answer_hit": (
        "$label«略有补充|相对较弱|可作参考»（$n $units，$outcome）。",
        "«只看了摘要|尚未通读»的有$label，«n = $n|$place一带 $n $units»，«用$instrument|随访 $months 个月»。",
        "«值得保留|可以列入»的还有$label，因为它«还报告了|也测了»$other。",
    ),
    "answer_compare": (
        "«两者有三点不同。|差别主要在三处。»«样本|一是规模»：$n 对 $n2 $units；«时长|二是随访»：$months "
        "个月对 $months2 个月；«地点|三是地方»：$place对$place2。"
        "«一定要选的话|如果要二选一»，我更«倾向|相信»$better，因为«样本更大|支撑它的数据更多»。"
        "这个分歧本身«可能来自|符合»$mechanism：它«需要|要求»的"
        "$moderator比«其中一项|样本小的那项»所具备的要高。",
    ),
    "answer_recall": (
        "前面谈到$topic时说过，$label（n = $n，$effect $unit）是参照，$moderator的阈值在 $cut $munit附近。"
        "«这一点仍然成立|我不会放弃这个判断»，"
        "«不过|而且»新查到的研究«把范围缩小了|让界限模糊了一些»。",
        "«接着上次的话说|回到$topic停下的地方»：$label的 n = $n，流失率 $dropout%。«此后没有研究推翻它|"
        "经过比较，只有一部分还站得住»。",
    ),
    "answer_criterion": (
        "«已记下|好的»：$crit为 $value$cunit。对$topic来说，«会剔除几项研究，主要的那项保留|"
        "变化没有想象的大»，«方案里应当写明|从摘要看是这样»。",
    ),
    "answer_hypothesis": (
        "假设已按 $value $munit记下。«它可以被推翻，这是好事|这个假设可以检验»："
        "只要有一项可靠的研究在这个值«以下|之下»看到明确的效应，«它就不成立了|就该放弃»。"
        "«目前|读过的研究里»«还没有这样明确的|最接近的是上面的分组分析»。",
    ),
    "answer_detail": (
        "关于$label的方法«多说一句|要补充几句»，因为很多结论都靠它：«读数时不知道分组|"
        "数据由$instrument盲法采集»«，这里并不是每项研究都做到了|»。"
        "«它的弱点是|我比较在意的是» $months 个月里流失了 $dropout%，«假如这些样本|要是缺失的部分»方向相反，"
        "估计值会«接近|降到» $below $unit左右。"
        "$sites 个站点之间差异不小（占方差的 $between），«所以平均值并不能代表某一个地方|而且$place并不典型»。",
        "$label的分组结果«很有启发|值得一看»：$moderator超过 $cut $munit时为 $above $unit，否则为 $below "
        "$unit。«这是同一项研究内部的对比|"
        "这比跨研究的比较更可信»，«不过|但»«事先没有计划|只是几个分组之一»«，各地的$other也不相同|，总体的 "
        "p = $p 也不能推到每一组»。"
        "«作者自己|他们»«归因于|提到的是»$mechanism。",
    ),
    "answer_end": (
        "«还不能下的结论是|仍然缺的是»：单凭$moderator就够了。«$mechanism2也可能|"
        "像$mechanism2这样的原因也会»«产生同样的结果|同时影响两者»。"
        "«要不要接着查这个？|需要的话我可以去查。»",
        "«我的把握|可信程度»：方向上中等，大小上偏低。«要有|需要»对$moderator做«随机分配|主动分组»"
        "的研究«才能定论|才说得清»。«如果想把表格并排看，可以告诉我。|»",
        "«下一步|如果你同意»，«先按地点比较分组结果|先看随访更长的研究»，«再确定具体数值|然后再修改假设»。",
    ),
    "q_n": ("$label的样本量是多少？",),
    "q_dropout": ("$label的流失率是多少？",),
    "q_instrument": ("$label用什么测量$outcome？",),
    "q_months": ("$label随访了多少个月？",),
    "q_larger": ("$label和$second，哪项研究的样本更大？",),
    "q_sum": ("不算对照，$label和$second一共研究了多少$units？",),
    "q_older": ("$first1的研究和$first2的研究，哪一项开始得更早？",),
    "q_span": ("$label和$second的发表时间相差多少年？",),
    "q_main": ("我们回到$topic时称为主要研究的那一项，样本量是多少？",),
    "q_noted": ("把$crit定为 $value$cunit 是哪天记下的？",),
    "q_crit": ("现在综述的$crit是多少？", "目前$crit定在多少？"),
    "q_hyp": ("目前关于$outcome的假设，认为$moderator要高于多少才有效应？",),
    "q_crit_old": ("$crit最初定的是多少？",),
    "nowhere": (
        "$label的研究是谁资助的？",
        "$label用的是什么统计软件？",
        "$label被引用过多少次？",
        "$first1在哪所大学任职？",
        "$label的研究注册号是什么？",
        "$label经过了哪个伦理委员会批准？",
        "$label的仪器花了多少钱？",
        "$label发表前是谁审的稿？",
        "$first1的电子邮箱是什么？",
        "$label最早是用哪种语言发表的？",
        "研究开始时$first1多大年纪？",
        "$label的原始数据存放在哪里？",
    ),
}
