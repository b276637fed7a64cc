"""Chinese, part three: what is said about trips, appointments, the week, work and tastes."""

TALK = """
@system
- 你是{me}的私人助理。{me}住在{home}，家里有{partner}和孩子{child}，在{company}做{job}。你可以查看和修改日历，
  检索邮件、网页和笔记，预订行程，也可以发邮件。¶¶工作方式：¶- 先查再答，不要编造订单、价格或者预约。¶
  - {me}后说的话代替先说的话；如果前后矛盾又看不出以哪个为准，就问清楚。¶- {me}喜欢什么、不喜欢什么，
  连同日期记进笔记。¶- 一次要花超过{m1000_3000}的，先问一声。¶- 用平实的句子回答，选项和日期用列表。¶¶常提到的人：
  上司是{boss}，亲戚里走得近的是{sibling}，朋友有{friend}、{friend}和{friend}，同事有{colleague}、
  {colleague}和{colleague}。
@aside
- 早。
- [趁{t8_9}开会之前问一句。|又是我，在地铁上。]
- 刚开完{n2_5}个小时的会。
- {child}睡了，我总算有空弄这个。
- 前阵子太忙，一直没顾上。
- {partner}刚才提醒了我一件事。
- 我在高铁上，信号不好，尽量说简单点。
- 趁我还没忘：
- 等{colleague}的工夫，再说一件事。
@lookup
- 我先查一下[现有的资料|手头的记录]。
- 稍等，我查一下。
- 我看看能找到什么。
- 正在查。
@move.why
- {child}那天正好有[演出|比赛|汇报课]。
- {boss}在那个时间安排了董事会。
- {partner}那天{t14_18}以前走不开。
- 是对方提出来的，那天他们[人手不够|不上班]。
- 我没注意到{sibling}要来住{n3_5}天。
- 预报说那天{t4_9}起有台风。
@companion
- {partner}
- {sibling}
- {friend}
- {colleague}
@trip.purpose
- 参加{friend}的婚礼
- 参加{company}的伙伴大会
- 看{firm}的春季展
- 休一个长周末
- 跟{firm}开启动会
- 给{sibling}过四十岁生日
- 参加开放地图年会
- 参观{firm}的工厂
@trip.label
- 去{city}{purpose}的那趟行程
@trip.query
- {home}到{city}的航班
@trip.ask
- 我要安排一趟行程，去{city}{purpose}。{out}出发，{back}回来，{companion}跟我一起去。帮我看看日历上排不排得开，
  有哪些航班。
- 帮我查一下去{city}的事，是去{purpose}。去程{out}，回程{back}，同行的是{companion}。机票大概多少钱？
  日历上有没有冲突？
- 定下来了，我和{companion}一起去{city}{purpose}，{out}走，{back}回。找几个合适的航班，
  [别太早的|顺便说说你会选哪个]。
@trip.option
- **{name}**，{about}：{detail}，{price}。[那个时段机场不挤|进市区方便|改期费最低，{m60_160}]。
- **{name}**（{about}），{detail}，{price}。[准点记录好|一般不用坐摆渡车|回程比另外几班合适]。
@trip.offer
- 去{city}{purpose}的那几天，日历和票价我都看过了。那几天没有挪不动的安排，和行程撞上的都是普通的会。
  可以考虑这几班：¶¶{list}¶¶我倾向于{best}：时间不折腾，万一要改期，手续费也不算高。
  {companion}的票我会订在同一个订单里。座位方面，我会按“{seat}”来选。现在就订{best}吗，还是再等几天？
  按以往的经验，这条线最后{n3_5}周大约会涨百分之{n5_20}。
- 去{city}的航班查好了。¶¶{list}¶¶这几班[都不用赶着打车去机场|都能在当天晚上到市区吃顿饭]。我建议选{best}，
  它不是最便宜的，贵了{m40_180}，但准点率更好，既然{companion}同行，这一点更要紧。选座就按“{seat}”。你要是同意，
  我就订票并写进日历，那一周的会我附一句说明替你推掉。
@trip.book
- 好，就订{carrier}的{flight}，两个人一起。
- 就{flight}吧，帮我订上，去{city}的事写进日历。
- 那就订{flight}，时间{companion}也没问题。
@trip.booked
- 订好了。{out}去{city}的{flight}，你和{companion}两位，订单号{ref}，一共{fare}，座位按“{seat}”备注了。
  行程已经写进日历并设了提醒，退改规定在确认单里。值机建议前一天晚上办，我可以在{t18_21}提醒你。
- 已订：{flight}，{out}出发，一共{fare}，订单号是{ref}，选座备注为“{seat}”，{companion}也在同一个订单里。
  {city}这边还剩两件事：住宿，还有你们不在家时那{n2_5}件小事找谁帮忙。想看酒店的时候告诉我。
@trip.move
- {label}要改时间。不是{old}了，改成{new}出发。{reason}{companion}已经知道了。
- 计划有变，{label}，出发日期请从{old}改到{new}。{reason}
- 不好意思，又是{label}。{old}走不了，要改到{new}。{reason}机票你看着处理一下。
@trip.moved
- 出发日期已经改到{new}，航空公司收了{fee}改期费，日历和提醒都一起挪了。新的时间我会发邮件告诉{companion}。
  到{city}当晚如果已经有安排，告诉我，我一并调整。
- 改签好了，{new}出发，手续费{fee}，日历已更新。我顺便看了一下影响：回程没有变，
  所以在{city}停留的天数跟原来不一样了。回程也要改吗？按规定，提前{n2_6}天都来得及。
@room.ask
- 再看看{city}的住宿。一晚不超过{limit}，离市中心别太远。
- {city}的酒店呢？安静的话，一晚{limit}以内都可以。
- 帮我在{city}找{n3_5}家酒店比一比，每晚上限{limit}，早餐无所谓。
@room.query
- {city}市中心附近的酒店
@room.option
- **{name}**，一晚{price}，{detail}。{about}
@room.offer
- {city}那几晚还有空房的，我比了一下：¶¶{list}¶¶点评里说吵的，我会先排除。房间我会按“{room}”来备注。
  这几家都可以取消，最严的一家要提前{n5_10}天，所以先订下来慢慢想也不吃亏。
- {city}这边可以考虑的有：¶¶{list}¶¶我会按晚上走回去方不方便来排，而不是按价格，毕竟每晚最多差{m60_160}。
  订的时候备注“{room}”。你选哪一家？
@room.book
- 就订{hotel}吧，一晚{rate}。
- {hotel}，一晚{rate}可以接受。
- {hotel}听着不错，{city}一晚{rate}，跟我想的差不多，订吧。
@room.booked
- {hotel}订好了，确认号{number}，备注了“{room}”，他们记下了，但不作保证。地址和规定附在日历的行程里。
- 已确认，确认号{number}：{city}的{hotel}，要求写的是“{room}”。到店付款，免费取消的最后一天也写进日历了。
@visit.label
- {surname}医生的牙科预约
- {firm}眼镜店的验光
- {surname}医生的理疗
- 跟{child}的班主任{surname}老师的面谈
- 跟税务顾问{surname}先生的会面
- {firm}车行的年检
- {surname}医生的宠物门诊
- 跟银行{surname}经理谈房贷
- {surname}医生那里的疫苗接种
@visit.ask
- 记一下{label}：{day}{time}，地点是{place}。跟别的有冲突吗？
- 刚约到{label}，{day}{time}，在{place}。写进日历，再看看前后都有什么事。
- 新增一项：{label}，{day}{time}，{place}。能挪的就挪开。
@visit.noted
- {label}已经写进日历，{day}{time}，{place}。前后的安排有：¶{near}¶两边都留得出时间。建议提前{n20_50}分钟出门，
  那一带车位[很少|紧张]。
- 记好了：{label}，{day}{time}，{place}。临近的有¶{near}¶这些都不是卡着分钟的。万一拖久了，
  受影响的只有紧接着的那一项，我发封邮件就能改。
@visit.bring
- 转诊单
- 蓝色的保险文件夹
- 最近{n3_6}个月的流水
- 旧眼镜
- 签好字的同意书
- 保养手册
- 去年的核定通知书
- 春天拍的片子
@visit.prepare
- {label}要带什么东西？他们好像写过邮件。
- {label}需要提前准备什么吗？帮我翻翻邮件。
@visit.letter
- 感谢您的预约。为了{label}顺利进行，请带上{item}，并提前{n5_20}分钟到。如果来不了，
  请提前{n24_48}小时拨打分机{n100_990}，逾期收取{m50_200}。
@visit.ready
- 他们请你带上{item}，再稍微早到一点，我都加进日程里了。{item}要是一时找不到，今天告诉我，我去问复印件行不行。
- 关于{label}的邮件写得很清楚：带上{item}。提前{n2_3}天取消不收费。建议前一天晚上就放在门口，
  那天早上{t6_8}就要开始忙。
@visit.move
- {label}改时间了，不是{old}，是{new}，{time}。{reason}
- 请把{label}从{old}改到{new}，{time}。{reason}
- {label}那边来电话，新的时间是{new}{time}，不再是{old}。
@visit.moved
- 改好了：{label}现在是{new}{time}，地点还是{place}。原来的时段空出来了，我先替你留着，
  [可以安静做点事|可以补上周拖下来的事]。
- {label}现在定在{new}{time}，{place}。中间有一项可以挪的，我往后推了{n30_90}分钟，不用通知别人。
@week.ask
- {first}到{last}我的日历是什么样？
- 把{first}到{last}的安排给我列一下，太紧的地方标出来。
- 帮我过一遍{first}到{last}这几天，我想找{n2_4}个小时看书。
@week.sum
- {first}到{last}的安排如下：¶¶{list}¶¶{remark}
- {first}到{last}大致是这样：¶¶{list}¶¶{remark}
@week.remark
- 最紧的是{t11_13}前后，两头之间只有{n5_15}分钟。
- 建议挑一天把{t14_16}空出来，处理积下来的信件。
- 有{n2_4}项没有议程，我可以去要，你也可以推掉。
- 那一周{partner}有{n2_3}天晚班，接孩子要靠你。
- 如果一定要舍一项，就舍掉那个有{n3_9}个人待定的。
- 最长的一段空档有{n90_190}分钟，在前半周。
@project.label
- {firm}[改版|手册|迁移]项目
- {firm}[调研|试点|审计]项目
- {city}[办公室|仓库|展厅]项目
@project.tell
- 工作上的事：{label}交给我了，由{lead}牵头，预算{budget}。找个地方记下来，再说说你会怎么铺开。
- 记一下，{label}启动了，负责人是{lead}，预算是{budget}。第一周该先定哪些事？
- {boss}批了{label}，预算{budget}，{lead}负责。我要一个能撑过头一个月的计划。
@project.note
- {label}：负责人{lead}，预算{budget}。
@project.note.later
- {label}：截止日期改为{new}。
@project.note.handed
- {label}：负责人改为{new}。
@project.plan
- {label}的负责人和预算都记下了。我会这样开头：¶¶{advice}¶¶先跟{lead}商量出一页纸，写清楚哪些不做，
  这一页比什么工具都省钱。
- 记好了。{label}的头几周，我的建议是：¶¶{advice}¶¶最先要问{lead}的是：钱不够的时候先砍哪一块。听了回答，
  就知道这件事的重点在哪里。
@project.advice
- 每{n4_9}天开一次站会，{n20_40}分钟，不超过{n4_8}个人。
- 只留一张风险清单，最多{n5_12}行，每行写上人和日期。
- 先压住百分之{n8_20}的预算，等头{n2_4}个结果出来再放。
- 跟{colleague}要上一轮的数字，当时差了百分之{n10_40}，得弄清楚原因。
- {d4_20}以前用{n3_7}句话写明怎样算完成，要{boss}肯签字的那种。
- 另一层楼的那{n2_3}个人现在就约好，{d20_40}以后他们就排满了。
- 最没把握的一步先试，拿{n10_60}条数据试，不要一上来就是{n3000_90000}条。
- 决定都记流水账，每条{n2_3}行，编号，谁都能看。
- 收尾留出{n2_6}天，谁来要都不给。
@project.mail
- 给{lead}起草一封邮件：{label}必须在{day}以前完成。先看看往来邮件，别写得前后不搭。
- {label}最晚{day}要完成。先读一下他们最近的邮件，再给{lead}拟一封，意思说到，语气别太硬。
@project.body
- 往来邮件我都看了，{n5_12}个没定的问题里，我想有{n2_3}个今天就能定。
- 大家传的{m8000_90000}这个数偏高，我们核下来是{m3000_7900}。
- 还没做完的那{n12_90}处，能不能按你打算做的顺序列一张单子给我？
- 建议{d2_9}{t9_16}通个电话，{n15_30}分钟，只谈卡住的地方。
- {colleague}要是抽不出{n2_5}天，请在{d3_10}以前告诉我，我去找{boss}谈。
- 我这边还欠{n2_4}件事，{n2_6}天之内给你。
- 第{n3_7}部分先放一放，等头{n20_80}个用户看过其他部分再加。
@project.draft
- 拟了一份：¶¶> {first}，你好：¶>¶> {label}有个时间要说明，{day}以前要全部完成。{body}¶>¶> {signoff}¶> {me}¶¶
  邮件里为那{n2_6}张发票起的争执我没有写，那种事当面说更好。就这样发吗？
- 从往来邮件看，他们知道时间紧。所以我这样写：¶¶> {first}：¶>¶> {label}的期限是{day}，
  我希望大家不用熬夜就能赶上。{body}¶>¶> {signoff}¶> {me}¶¶全文大约{n160_320}个字。嫌长的话，第二句可以删掉。
@project.tweak
- 可以，开头再客气一点，然后发给{lead}。
- 讲数字的那句删掉，其他没问题，发吧。
- 行。再加一句，这周我每天{t16_18}以前都在，然后发出去。
@project.final
- {first}，你好：这段时间辛苦了。{label}的期限是{day}，有任何问题随时找我聊。
@project.sent
- 按你的意思改好，已经发给{lead}了。{n2_4}天之内没有回信的话，我会告诉你。
- 关于{label}的邮件已经发给{lead}，副本存进了项目笔记。
@project.why
- {boss}希望能赶上半年报。
- 供应商的零件还要{n3_5}周。
- 唯一懂导出的人请了{n2_6}周病假。
- 审计的人要比原先说的晚来{n6_12}天。
@project.later
- {label}有变化：截止日期不是{old}了，改成{new}。{reason}
- {reason}所以{label}的期限从{old}改到{new}。这会影响什么？
@project.moved
- 记下了，{label}现在的期限是{new}。多出来的时间我会这样用：¶¶{advice}¶¶上次那封邮件里写的还是旧日期，
  建议给抄送的人都补一句。
- 笔记里{label}的截止日期已经改成{new}。有三点要注意：¶¶{advice}¶¶除了告诉大家什么时候，也要说为什么，
  不然下一个日期就没人当真了。
@project.handed
- {label}换人了，由{new}接替{old}。{reason}
- 记一下，{label}现在由{new}负责，不再是{old}。{reason}
@project.over
- 记下了，{label}由{new}负责。从{old}那里交接，我建议：¶¶{advice}¶¶两个人的第一次碰头我来约，
  那{n2_5}个例会也改到新负责人名下。
- {label}的负责人已经改成{new}。为了从{old}那边交接时不漏东西：¶¶{advice}¶¶最容易漏的是权限，要有人去申请，
  一般要{n2_6}天。
"""
