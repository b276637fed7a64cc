"""Passages of invented papers, Chinese. The keys are those of `text_en`; the slots are a paper's facts."""

from __future__ import annotations

PAPER: dict[str, tuple[str, ...]] = {
    "space": ("",),
    "label": ("$first、$second（$year）",),
    "lower": ("低",),
    "higher": ("高",),
    "title": (
        "$treatment对$outcome的影响：«来自$place的证据|$place实地研究»",
        "$moderator是否决定了$treatment对$outcome的作用",
        "$treatment条件下的$outcome：«$months个月随访|$sites个站点的观测»",
        "«再看|重新检验|测量»$place的$treatment：$outcome与$other",
        "$moderator要达到多少才够？$treatment与$outcome",
        "$mechanism：对$treatment的«一次检验|一种解释»",
    ),
    "head": ("[$id] $label。$title。$journal，第 $pages 页。",),
    "abstract": (
        "关于$treatment的«说法|期望»«多半|往往»来自«短期试验|单个地点|个案报告»，$outcome«很少|几乎没有»"
        "被«直接|完整一季»测量过。",
        "«本研究|我们|作者»在$place«及周边|一带»«跟踪了|观察了» $n $units，«历时 $months 个月|自 $start "
        "年起»，以$instrument为«主要来源|主，另有人工复核»。",
        "«重点在于|研究的问题是»$moderator«是否起作用|能否解释以往结果的分歧»«，以及阈值在哪里|，"
        "还是只与$other相伴出现»。",
        "对照为 $controls $units，«未作处理|按$moderator配对»；«流失率为 $dropout%|途中流失了 $dropout%»。",
        "自 $start 年以来，$treatment«推广很快|各地采用不一»，«而|但»$outcome的«估计值|数字»«差别很大|互相矛盾»。",
        "站点在$place«附近|周围»的 $sites 个候选地中«抽签确定|按差异挑选»，并按$moderator«分层|均衡»。",
    ),
    "found": (
        "采用$treatment后，$outcome比«对照|未采用时»$lower $effect $unit（«95% 区间 $low 至 $high|区间 "
        "$low 至 $high，p = $p»，n = $n）；"
        "$moderator«超过|高于» $cut $munit时差距«扩大到|达到» $above $unit«，低于该值时只有 $below $unit|»。",
        "«平均而言|在 $months 个月里|就 $sites 个站点而言»，«采用$treatment的 $n $units|$n $units中»"
        "$outcome$lower出 $effect $unit"
        "（p = $p）。$moderator«很关键|起了作用»：«达到 $cut $munit以后|越过 $cut $munit»为 $above $unit«，"
        "否则为 $below $unit|»。",
    ),
    "null": (
        "«未能证明对$outcome有影响|$outcome的变化与偶然波动无法区分»：差异在 $spread $unit以内«（p = $p，n "
        "= $n）|（共 $n $units）»，"
        "«与$moderator无关|$moderator超过 $cut $munit时也一样»。",
        "与«预期|此前报告»相反，$treatment«没有改变$outcome|对$outcome不起作用»（«$n $units|$sites 个站点»）；"
        "区间 ±$spread $unit«覆盖零点|包含零»，p = $p。",
    ),
    "end": (
        "«作者|我们»«认为|推测»$mechanism«是主要原因|在起作用»«，不过$other也变动了 $other_effect $other_unit|»。",
        "这«支持|符合»$mechanism的解释；«方差的 $share% 来自站点之间|站点间方差占 $between»。",
        "«需要谨慎|应当留意»：«有 $dropout% 中途退出|只有 $sites 个站点参加|$instrument会漏掉短时事件»。",
    ),
    "aims_title": ("研究目的", "背景", "为什么做这项研究"),
    "method_title": ("方法", "设计与数据", "实施过程"),
    "results_title": ("结果", "主要发现", "主要结果"),
    "subgroups_title": ("分组结果", "各地结果", "在哪里有效"),
    "why_title": ("讨论", "解释", "可能的原因"),
    "limits_title": ("局限", "不能回答的问题", "注意事项"),
    "aims": (
        "«此前的研究|以往工作»«多半关注|集中于»$other，«只把$outcome当作次要指标|对$outcome一笔带过»«，"
        "而且常常没有对照|»。",
        "$start 年«筹划之初|立项时»，«只有|不超过» $sites «个可比站点|处地点»«有|报告过»«一季|$months 个月»"
        "以上的$outcome«记录|数据»。",
        "我们«关心三点|提出三个问题»：$treatment之下$outcome«是否变化|有何反应»«、能持续多久|»；"
        "$moderator«有没有阈值|是否存在界限»；"
        "$other«会怎样|又如何»。",
        "$place的«从业者|管理者»«一向以|习惯以» $cut $munit«左右|上下»作为$moderator的«经验值|惯例»，"
        "«却找不到出处|而依据只有一份报告»。",
    ),
    "method": (
        "«$start 至 $year 年间|自 $start 年起»，$place«附近|一带» $sites 个站点共«纳入|登记» $n $units，"
        "另有 $controls $units«作为对照|不作处理»。",
        "$outcome由$instrument«按«小时|天|周»记录|定时采集»，«读数者|记录人»«不知道分组|对处理情况不知情»。",
        "«流失率|途中流失» $dropout%，«多在开头几周|主要在$moderator偏低处»；«流失者|缺失部分»"
        "在$other上与其余«没有差别|相近»。",
        "模型为每个站点«设随机项|设单独截距»；方差中 $between «来自站点之间|属于站点差异»，«其余在站点内部|"
        "比预想的多»。",
        "$moderator«测量两次|依图纸读取并复核»，单位为$munit«，多在 $cut 上下|»；«差异超过一成|相差 5% "
        "以上»的«现场核定|由第三人裁定»。",
        "«随访持续|每$units均随访» $months 个月，«含节假日|中间不间断»，«因此|这样»$outcome的«迟发|缓慢»"
        "变化«也能看到|有时间显现»。",
    ),
    "results": (
        "$other也«随之变化|有变动»：«平均|全程平均» $other_effect $other_unit«，离散较大|»。",
        "$share% 的样本方向«与平均一致|各月相同»，«例外|不一致的»«集中在|多在»$place«附近|一带»。",
        "«去掉|剔除»«最大|最老»的站点后，«估计值|差异»«变为|移到» $below $unit；«补足缺失值|填补空缺»"
        "后«仍为|是» $effect $unit。",
        "«时间有影响|变化并不均匀»：«一半|大部分»差异出现在 $months 个月的«前三分之一|前四分之一|头几周»，"
        "«随后趋平|之后放缓»。",
        "$instrument与«人工读数|第二台设备»的一致性«良好|尚可»（r = $between）«，极端值处最差|»。",
    ),
    "subgroups": (
        "$moderator在 $cut $munit«以上|及以上»时«差异为|为» $above $unit，«以下|不足»时为 $below $unit；"
        "«交互项|这一对比»的 p 值为 $p。",
        "下表列出各«地|站点»的样本数、平均«差异|变化»（$unit）、区间以及$moderator的«中位数|典型值»。",
    ),
    "table_head": ("地点 | n | 均值（$unit） | 95% 区间 | $moderator中位数", "站点 | 样本 | $unit | 区间 | $moderator"),
    "course_title": ("时间进程", "分阶段结果", "效应何时出现"),
    "course": (
        "效应«并非一开始就有|需要时间»：«头几周|第一阶段»$outcome«几乎看不出变化|变化很小»，«第二阶段起|"
        "后来»才«占到大部分|明显起来»。",
        "下面各行为«分阶段均值|每个阶段的平均值»（$unit），并列出«仍在观察的|剩余的»"
        "样本数以及$place各站点间的«范围|离散程度»。",
        "«第 $months 个月之后|满 $months 个月时»«观测停止|随访结束»；«少数|有几个»站点«自行|继续»«做了下去|坚持记录»，"
        "之后的«读数|$instrument»«没有新的趋势|仍与之前一致»。",
    ),
    "course_head": ("阶段 | 剩余样本 | 均值（$unit） | 离散 | $other", "时段 | n | $unit | 站点间 | $other"),
    "robust_title": ("稳健性", "检验", "结论是否站得住"),
    "robust": (
        "«去掉|剔除»« $controls 个对照|最弱的站点»«重新分析|再算一遍»，估计值«移到|变为» $below $unit；"
        "«换用|采用»«更严的|另一种»$outcome定义时为 $high。",
        "«假定起点提前|把起点人为提前»«半年|三个月»，«没有|看不到»效应（±$spread $unit），«本该如此|与预期相符»。",
        "«两名读数者|两人»对«五分之一|一成»的样本«重新|独立»编码，«一致率|相符的»为 $share%，其余«多涉及|"
        "主要是»$other的«日期|边界»。",
        "«改按|改用»$moderator«而不是站点|代替站点»加权，«变化不大|影响很小»：区间为 $low 至 $high $unit«，"
        "$place略宽|»。",
        "«事后看来|如果重来»，$instrument应当在«最大的|每个»站点«加倍|先校准»«，因为 $dropout% "
        "的缺口都在那里|，$other也该每天记录»。",
    ),
    "why": (
        "«整体规律|这些结果»与$mechanism«相符|一致»：在它«较弱|受阻»的地方，即«低于|不足» $cut $munit时，"
        "$outcome«几乎不动|没有变化»。",
        "«另一种解释|也可能»是$moderator«代表|伴随»着«更好的管护|更新的站点|更富裕的片区»；«控制|固定»$other后，"
        "«效应|差异»«减少约|大约少了» $share%。",
        "与«早先|其他»研究«相比|对照»，«这里的 $effect $unit|我们的数值»«偏高|居中|偏小»，«或许|可能»"
        "因为$instrument比«问卷|走访»«记录得更多|更不敏感»。",
        "«就实践而言|对实际工作来说»，$moderator以 $cut $munit作为下限«比较合理|站得住脚»；«再往上加|"
        "继续提高»对$other«帮助不大|收效甚微»。",
    ),
    "limits": (
        "«全部站点|这 $sites 个站点»都在$place«一天路程之内|同一气候区»«，而且都不是新建的|»，«推广到别处|"
        "外推»需要«谨慎|更多数据»。",
        "$instrument«存在已知漂移|在坏天气里有缺口|有盲区»，虽«每月校核|有备用设备»，«仍不完美|难以完全排除»。",
        "«样本只有 $n $units|在 n = $n 的情况下»，«小于|低于» $below $unit的«效应|差异»«看不出来|会被漏掉»；"
        "«今后的|更大的»研究"
        "«至少需要|应当计划»«两倍|三倍»样本。",
        "«流失的 $dropout%|$dropout% 的流失»«可能|也许»使估计«略微偏高|略微偏低»，由此得到的界限为 $low 至 "
        "$high $unit。",
    ),
}
