"""Chinese, part six: questions on the wider world, and the probes."""

READING = """
@howto.topics
- jetlag
- compost
- damp
- chess
- guitar
- passport
- sleep
- bike
@howto.jetlag.query
- 短途出国 倒时差
@howto.jetlag.ask
- 只待{n3_5}天的话，时差怎么倒？
- 过阵子要跨{n4_8}个时区，倒时差有什么真管用的办法？
@howto.jetlag.fact
- 提前{n3_5}天，每天把睡觉时间挪{n20_45}分钟，再多谁也坚持不了。
- 光最要紧：往东飞的话，{t9_10}以前在户外待{n20_60}分钟。
- 停留不到{n3_4}天，干脆照家里的时间过也行。
- 当地{t13_14}以后喝咖啡得不偿失，有研究说会少睡{n30_70}分钟。
- 小睡{n15_30}分钟有用，睡{n70_110}分钟夜里更难熬。
- 第一天起就按当地时间吃饭，{t19_20}以后那顿少吃。
- 每{n2_3}个时区大约要{n2_3}天，过了第{n7_9}天还难受就是别的原因了。
@howto.compost.query
- 家庭堆肥 有味道
@howto.compost.ask
- 我们的堆肥有股怪味，哪里做得不对？
- {n3_9}平米的地方怎么开始堆肥，又不招邻居烦？
@howto.compost.fact
- 干的褐色材料和绿色材料按{n2_3}比1混，有臭味就是绿的太多。
- 每{n10_20}天翻一次，中心温度要到{n50_65}度。
- 超过{n4_8}厘米的块头，要多等{n3_6}个月。
- 熟食{n2_9}个晚上就会招来老鼠，别放。
- 手感像拧干的海绵，夏天干的时候一周要浇{n5_10}升水。
- 半平米太小，热不起来，长宽至少{n70_100}厘米。
- {n7_14}个月以后腐熟，闻着像树林。
@howto.damp.query
- 墙面返潮 冬季湿度
@howto.damp.ask
- {child}房间的墙角有黑点，是潮吗？怎么办？
- 早上{t6_8}窗户上全是水，多潮算太潮？
@howto.damp.fact
- 湿度保持在百分之{n40_45}到{n55_60}，湿度计{m20_60}一个。
- 每天开窗{n3_4}次，每次大开{n5_10}分钟，整天留条缝只会把墙吹凉。
- 家具离外墙{n5_10}厘米。
- 墙面低于{n11_13}度，室内的水汽就会凝上去。
- 不到{n20_50}厘米的霉点用{n70_80}度的酒精擦，戴手套。
- {n3_4}口人晾衣服，一周往空气里放{n6_10}升水。
- {n4_8}周之内又长出来，问题就在墙里，书面通知房东。
@howto.chess.query
- 教孩子下象棋
@howto.chess.ask
- {child}想学象棋，怎么教才不会教伤了？
- 每天{n10_20}分钟，教孩子下棋有什么好办法？
@howto.chess.fact
- 先只用兵和卒，下{n5_8}盘，比一口气讲完规则强。
- 每盘让孩子悔{n2_4}步棋，并说出理由。
- 每天{n4_8}道两步之内的残局题，胜过看开局书。
- {n8_10}盘里最多故意输{n2_3}盘，孩子看得出来。
- 棋社从{n6_7}岁起收，头{n2_4}次一般不收钱。
- 用棋钟很有意思，每人{n10_15}分钟，不过要等{n2_4}个月以后。
- {n20_30}分钟就停，趁还没下够。
@howto.guitar.query
- 成人零基础 吉他练习
@howto.guitar.ask
- 每天只有{n12_20}分钟，现在学吉他晚不晚？
- 我花{m500_1500}买了把吉他，怎么练才不会{n3_6}周就放弃？
@howto.guitar.fact
- 每天{n10_15}分钟，远胜过周日一口气{n80_120}分钟。
- 先把{n2_3}个和弦换熟，一分钟换{n40_60}次，再学第四个。
- 琴弦{n3_4}个月换一次，{m40_120}，旧弦声音闷，还硌手。
- 指尖会疼{n2_3}周，过了就好。
- 节拍从{n60_70}开始，每周加{n3_5}。
- 开头请老师上{n4_6}节课，省得改{n5_9}个月的坏习惯。
- 每周录{n60_90}秒，只有这面镜子不骗人。
@howto.passport.query
- 儿童护照 换发 办理时间
@howto.passport.ask
- 现在给孩子办护照要多久？最容易出错的是什么？
- 换护照要准备什么，才不用跑{n2_3}趟？
@howto.passport.fact
- 目前要{n7_20}天，加急{n3_6}天，多收{m100_300}。
- 照片要{n3_6}个月以内的，一百张里有{n12_18}张通不过。
- 有些国家要求入境时还剩{n3_6}个月有效期。
- 孩子办理要监护人陪同，少一份证明就得多等{n8_14}天。
- 工作日{t6_8}放号，{n10_30}分钟就没了。
- 复印{n2_3}份，跟护照分开放。
- 旧的会剪角，上面要是还有{n2_4}年的签证，记得要回来。
@howto.sleep.query
- 改善睡眠 睡前习惯
@howto.sleep.ask
- 我每天夜里{t3_4}醒，看医生之前可以先改什么？
- 靠谱的研究里，怎么能睡得快一点？
@howto.sleep.fact
- 房间{n16_18}度，暗到伸手{n40_60}厘米看不见手。
- 起床时间前后不差{n20_30}分钟，周日也一样。
- 躺了{n20_25}分钟还醒着，就起来在暗一点的灯下看点无聊的书。
- 喝酒能早睡着{n8_12}分钟，可是后半夜睡不安稳。
- 屏幕本身不如屏幕上的内容要紧，提前{n60_90}分钟放下工作。
- 提前{n80_100}分钟泡{n10_15}分钟热水澡，证据比较足。
- 每周有{n3_4}个晚上这样，又超过了{n3_4}周，就去看医生。
@howto.bike.query
- 自行车 在家保养
@howto.bike.ask
- 自行车吱吱响，花{m100_300}送修之前，我自己能弄什么？
- 家里{n3_4}辆自行车，花{m200_600}以内配一套工具，要买什么？
@howto.bike.fact
- 每{n200_350}公里擦一次链条上一次油，{n5_10}分钟后把浮油擦掉。
- 量链条的卡尺{m15_40}，能省下{m150_400}的飞轮。
- 按胎侧的数字打气，城市车{n3_6}个巴，每{n2_3}周一次。
- 刹车皮薄到{n1_2}毫米以下就该换，头一回换要{n15_25}分钟。
- 跟着踩踏的节奏响，{n8_10}次里有{n3_5}次是座管。
- 有碳纤维部件，就值得买一把{n14_24}牛米的扭力扳手。
- 轮组每{n2_3}年校一次，每个{m40_120}。
"""

ASKED = """
@ask.trip.out
- 按最新的安排，{it}是哪天出发？
@ask.trip.companion
- 谁跟我一起参加{it}？
@ask.trip.ref
- {it}的机票订单号是多少？
@ask.trip.flight
- {it}订的是哪个航班号？
@ask.trip.fare
- {it}的机票订的时候一共多少钱？
@ask.trip.hotel
- {it}我选了哪家酒店？
@ask.trip.rate
- {it}的酒店一晚多少钱？
@ask.trip.number
- {it}的酒店确认号是多少？
@was.trip.out
- {it}改期之前，最初定在哪天出发？
@by.trip.ref
- 机票订单号为{v}的那趟行程
@by.trip.hotel
- 住{v}的那趟行程
@by.trip.number
- 酒店确认号为{v}的那趟行程
@by.trip.companion
- 跟{v}一起去的那趟行程
@event.trip.out
- {it}的出发日
@ask.visit.day
- {it}现在定在哪天？
@ask.visit.place
- {it}在什么地址？
@ask.visit.bring
- {it}要我带什么？
@was.visit.day
- {it}最早约在哪天？
@by.visit.place
- 在{v}的那个预约
@by.visit.bring
- 要带{v}的那个预约
@event.visit.day
- {it}
@ask.project.lead
- {it}现在由谁负责？
@ask.project.budget
- {it}的预算是多少？
@ask.project.deadline
- 按最新的说法，{it}最晚哪天要完成？
@was.project.deadline
- {it}推迟之前，最初的截止日期是哪天？
@was.project.lead
- {it}一开始是谁负责的？
@by.project.lead
- {v}负责的那个项目
@by.project.budget
- 预算为{v}的那个项目
@event.project.deadline
- {it}的截止日
@ask.bill.price
- {it}现在每月多少钱？
@ask.bill.number
- {it}的客户编号是多少？
@ask.bill.notice
- {it}的解约通知期是怎么规定的？
@was.bill.price
- {it}最初每月多少钱？
@by.bill.number
- 客户编号为{v}的那份合同
@sum.bill
- {a}和{b}现在加起来每月多少钱？
@ask.month.total
- 按家用账户，{it}一共花了多少？
@ask.flat.rent
- {it}每月租金多少？
@ask.flat.keys
- 按最新的消息，{it}哪天拿钥匙？
@ask.flat.mover
- 搬到{it}用的是哪家搬家公司？
@was.flat.keys
- {it}最初说哪天拿钥匙？
@by.flat.mover
- 请{v}搬家的那套房子
@event.flat.keys
- {it}交钥匙
@ask.gift.day
- 按最新的说法，{it}是哪天？
@ask.gift.limit
- {it}的礼物我最多想花多少钱？
@ask.gift.present
- {it}我决定送什么？
@was.gift.day
- {it}我一开始说的是哪天？
@by.gift.present
- 我决定送{v}的那个场合
@event.gift.day
- {it}
@ask.dinner.day
- {it}现在定在哪天？
@ask.dinner.allergen
- 因为有人过敏，{it}不能放什么？
@was.dinner.day
- {it}最初定在哪天？
@event.dinner.day
- {it}
@ask.race.day
- {it}是哪天？
@ask.race.target
- {it}我现在的目标成绩是多少？
@was.race.target
- {it}我最初的目标是多少？
@event.race.day
- {it}
@ask.buy.model
- {it}我选了哪个型号？
@ask.buy.price
- 我选的{it}多少钱？
@ask.buy.day
- {it}现在定在哪天送货？
@was.buy.day
- {it}最初说哪天送货？
@event.buy.day
- {it}送货
@ask.note.value
- {it}
@ask.taste.seat
- 我现在坐飞机要什么样的座位？
@ask.taste.room
- 订酒店的时候该要什么样的房间？
@ask.taste.diet
- 我现在吃饭的规矩是什么？
@ask.taste.meetings
- 我的工作会议应该排在什么时候？
@ask.taste.reminder
- 日历提醒应该提前多久？
@ask.taste.signoff
- 我的邮件结尾用什么话？
@ask.taste.coffee
- 在咖啡馆该给我点什么？
@ask.taste.groceries
- 买菜应该什么时候送？
@ask.taste.exercise
- 我想在什么时候锻炼？
@ask.taste.transport
- 省内出行我想怎么走？
@was.taste.seat
- 我第一次提到飞机座位时，要的是哪种？
@was.taste.diet
- 我最早定下的吃饭规矩是什么？
@was.taste.room
- 我第一次提到酒店房间时，要的是哪种？
@gap
- 按最新的日期，{a}和{b}之间相差多少天？
@never
- {boss}的车牌号是多少？
- {partner}是什么血型？
- {friend}家的狗叫什么名字？
- {child}的滑雪鞋穿多大码？
- {sibling}的自行车锁密码是多少？
- {partner}是哪一年中学毕业的？
- 给{child}开存折的银行柜员叫什么？
- {friend}跟我们合用的是哪个视频网站的会员？
- {colleague}的停车位是几号？
- {sibling}请保洁每次付多少钱？
- {child}在班里的学号是多少？
- {boss}的老家在哪个县？
@never.trip
- {it}从哪个登机口登机？
- {it}我买的是哪家的旅行保险？
@never.visit
- {it}那边的前台叫什么名字？
@never.project
- {it}的标志是谁设计的？
@never.flat
- {it}上一任租客叫什么？
@never.dinner
- {it}{friend}答应带哪种酒来？
@never.race
- {it}我的参赛号是多少？
@never.buy
- {it}的序列号是多少？
"""
