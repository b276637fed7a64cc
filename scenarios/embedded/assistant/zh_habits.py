"""Chinese, part four: what is said about likes, bills, the month's spending, notes and answers."""

HABITS = """
@taste.topics
- seat
- room
- diet
- meetings
- reminder
- signoff
- coffee
- groceries
- exercise
- transport
@taste.seat.name
- 飞机座位
@taste.seat.open
- 有什么坐什么
@taste.seat.value
- 靠窗的座位 = 靠窗 = 窗口
- 靠过道的座位 = 靠过道 = 过道
- 前五排的座位 = 前五排
- 安全出口旁边的座位 = 安全出口
@taste.seat.why
- 我的膝盖[有意见|抗议了{n2_6}个月了]。
- 上一趟{n2_4}个小时坐得很难受。
@taste.room.name
- 酒店房间
@taste.room.open
- 安静一点的房间
@taste.room.value
- 朝院子的房间 = 朝院子
- 高楼层的房间 = 高楼层
- 带小厨房的房间 = 带小厨房 = 小厨房
- 靠楼梯的房间 = 靠楼梯 = 楼梯
@taste.room.why
- 上次住的地方，我到{t1_4}还没睡着。
- 住错了{n3_9}晚，人就变挑剔了。
@taste.diet.name
- 吃饭
@taste.diet.open
- 大家都能吃的
@taste.diet.value
- 蛋奶素 = 吃蛋奶素
- 纯素 = 全素 = 吃纯素
- 不含乳制品 = 不吃乳制品 = 无乳制品
- 吃鱼不吃肉 = 只吃鱼不吃肉
@taste.diet.why
- 医生看了我{n2_4}张化验单，脸色不太好。
- 我试了{n3_9}周，感觉好多了。
@taste.meetings.name
- 工作会议
@taste.meetings.open
- 正常上班时间
@taste.meetings.value
- 只排在上午 = 上午
- 排在10:00到15:00之间 = 10:00到15:00 = 10点到15点
- 只排在下午 = 下午
- 只排在周二到周四 = 周二到周四 = 周二至周四
@taste.meetings.why
- 不留出整块的{n2_4}个小时，什么都做不成。
- {child}换了课表，到{d60_90}以前我没得选。
@taste.reminder.name
- 日历提醒
@taste.reminder.open
- 默认提醒
@taste.reminder.value
- 提前30分钟 = 30分钟 = 半小时
- 提前两小时 = 两小时 = 两个小时 = 2小时
- 前一天晚上 = 前一晚
- 提前一整天 = 提前一天 = 一整天 = 24小时
@taste.reminder.why
- 上个月我因为这个漏了{n2_3}件事。
- 手机一天响{n20_60}次，时机很要紧。
@taste.signoff.name
- 邮件结尾
@taste.signoff.open
- 此致
@taste.signoff.value
- 顺颂时祺
- 祝好
- 祝一切顺利
- 谢谢
@taste.signoff.why
- {colleague}说以前那个太[生硬|冷淡]，我也这么觉得。
- 我一口气读了自己的{n20_60}封邮件，实在别扭。
@taste.coffee.name
- 咖啡馆点单
@taste.coffee.open
- 一杯咖啡
@taste.coffee.value
- 燕麦奶澳白 = 澳白
- 黑的手冲 = 手冲 = 手冲黑咖啡
- 低因卡布奇诺 = 低因
- 双份浓缩 = 浓缩
@taste.coffee.why
- 固定喝这个，睡得好一些。
- 同一种喝了{n3_9}年，被{friend}说动了。
@taste.groceries.name
- 买菜送货
@taste.groceries.open
- 平时的时段
@taste.groceries.value
- 周二晚上 = 星期二晚上 = 周二
- 周六上午 = 星期六上午 = 周六
- 周四六点以后 = 星期四六点以后 = 周四
- 周五中午 = 星期五中午 = 周五
@taste.groceries.why
- 不然那{n2_4}箱东西要在门口放到{t19_21}。
- 那个时候{partner}在家，能收。
@taste.exercise.name
- 锻炼时间
@taste.exercise.open
- 有空的时候
@taste.exercise.value
- 早饭之前 = 早饭前
- 午休的时候 = 午休
- 晚上八点以后 = 晚上八点后 = 晚上
- 只在周末 = 周末
@taste.exercise.why
- 别的时间连着{n2_5}周都没做到。
- 手表说那样心率能低{n4_12}下。
@taste.transport.name
- 省内出行
@taste.transport.open
- 哪样快选哪样
@taste.transport.value
- 坐高铁 = 高铁
- 坐大巴 = 大巴
- 租车自驾 = 租车 = 自驾
- 坐夜班火车 = 夜班火车 = 夜车
@taste.transport.why
- 路上那{n2_6}个小时我想看书。
- 上一趟走了{n6_11}个小时，我发过誓了。
@taste.first
- 有件事请记住，关于{topic}：{value}。{reason}
- 记一笔。说到{topic}，我的要求是：{value}。{reason}
- {topic}这件事定个规矩：{value}。{reason}以后不用每次问我。
@taste.change
- {topic}我改主意了。从今天起：{value}，不再是{old}。{reason}
- {topic}的规矩更新一下，以前是{old}，今天起改为{value}。{reason}
- 关于{topic}，{old}作废，现在要的是：{value}。{reason}
@taste.note
- {topic}的规矩：{value}。
@taste.noted
- 记下了，{topic}：{value}。以后我直接照办，只有要多花钱的时候才提一句，比如超过{m20_90}。
- 以后就按这个来，{topic}：{value}。笔记里写了今天的日期，将来改了也分得清先后。
@taste.changed
- 改好了。{topic}现在的规矩是“{value}”，旧的“{old}”已经划掉，注了今天的日期。已经订好的保持不动，除非你让我改。
- 明白，{topic}从现在起是“{value}”，不再是“{old}”。我查了还没落实的请求，有{n2_3}项用的是旧规矩，
  能免费改的我都改掉。
@taste.slip
- 帮我把下周的事准备一下。{topic}：{value}，老样子。
- 我单子上那{n2_5}项要订的，记得{topic}：{value}。
@taste.doubt
- 动手之前要先问一句。笔记里{topic}写的是“{value}”，比“{old}”新。你现在说的又是旧的那个，到底以哪个为准？
- 等一下，{topic}你之前让我不要再用“{old}”，改用“{value}”。是又变了，还是口误？弄清楚之前我先不动。
@taste.settle
- 幸亏你问。{topic}就定：{value}，别管{other}。
- 是我没说清楚。{topic}以这个为准：{value}，不是{other}。
@taste.settled
- 清楚了，{topic}：{value}。我在旁边注了“已确认”和日期，另一行删掉了。
- 那就是“{value}”。{topic}的笔记现在只剩一行，以后应该不用再问这个了。
@bill.label
- {firm}健身房的会员
- {firm}琴行的音乐课
- {firm}的宽带
- {firm}的净水服务
- {firm}的迷你仓
- {firm}的家财险
- {firm}的蔬菜箱
- {firm}的课后托管
@bill.tell
- 家用清单上加一项：{label}，每月{price}。合同上说怎么退？
- 记一下{label}，每月{price}，再把写着条款的那封信找出来。
- 我们办了{label}，一个月{price}。帮我找找确认邮件，看提前多久通知才能退。
@bill.notice
- 提前十周 = 十周 = 10周
- 季度末之前六周 = 六周 = 6周
- 月底之前一个月 = 一个月 = 1个月
- 年底之前三个月 = 三个月 = 3个月
- 随时提前两周 = 两周 = 2周
@bill.letter
- 欢迎您。您办理{label}的客户编号是{number}，来信请注明。合同首期{n6_24}个月。解约通知期：{notice}。
  现价保持{n6_18}个月，之后如有变动，我们会提前{n4_8}周告知。客服时间{t8_9}到{t16_19}。
@bill.noted
- {label}已经列进清单，每月{price}，一年{year}。按那封信，退的话要{notice}通知。客户编号也在信里，我抄进笔记了。
- 信找到了，{label}的解约通知期是{notice}。每月{price}，一年就是{year}，在固定开支里排第{n2_6}位。
@bill.change
- {label}变价了，以前{old}，现在每月{new}。
- 收到通知，{label}以后每月{new}，不再是{old}。
- 清单更新一下：{label}不再是{old}，改成每月{new}了。
@bill.note
- {label}：今天起每月{new}。
@bill.changed
- 记下了，{label}每月{new}，一年相差{gap}，合计{year}。变价之后一般有{n2_6}周可以解约，最后期限我写进清单了。
- {label}现在是每月{new}，一年{year}，跟以前差{gap}。为这点差别我不会换，不过你愿意的话，我可以问{n2_3}家要报价。
@month.ask
- {month}我们的钱都花到哪里去了？
- 帮我把{month}按类别汇总一下，有什么特别的说一声。
- {partner}想知道{month}花了多少，帮忙从账户里加一下。
@month.label
- {month}的{category}
@month.sum
- {month}账户里按类别是：¶¶{list}¶¶一共{total}。{remark}
- {month}的数字如下：¶¶{list}¶¶合计{total}。{remark}
@month.remark
- 去掉最大的{n2_3}笔，其实是很平常的一个月。
- 不到{m20_40}的有{n3_9}笔，加起来也不多。
- 自动扣款都在{n2_6}号到{n7_12}号之间扣了，正常。
- 工作日在外面吃了{n2_5}回，要省的话先从这里看。
- 有一笔像是重复扣款，前后差{n2_3}天，我先问清楚再申诉。
@note.ask
- 我在“{title}”下面记过什么？想不起来了。
- 帮我在笔记里找一下“{title}”。
- 我要“{title}”那条笔记，一起翻到的也给我看看。
@note.found
- “{title}”下面记的是：{value}。同一处还有几行：¶¶{others}
- 找到了，“{title}”写的是{value}。旁边还有：¶¶{others}
@howto.answer
- 查到的如下，几个来源不是互相抄的：¶¶{list}¶¶{close}
- 先说结论：要做的比大多数文章写的少。具体是：¶¶{list}¶¶{close}
- 我看了{n4_9}篇，自相矛盾的略去了，剩下这些：¶¶{list}¶¶{close}
@howto.close
- 你愿意的话，第一步我排在{d2_9}。
- 我会先试最便宜的那条，{n2_4}周以后再看。
- 各家说法不一的地方，我取了保守的，相差最多百分之{n10_30}。
- 我最信得过的{n2_3}个链接存进笔记了。
"""
