"""Chinese, part five: moving house, presents, guests, training, things to buy."""

HOME = """
@flat.label
- {address}的房子
@flat.event
- 新房交钥匙
@flat.query
- 搬家报价
@flat.found
- 定了，{address}的房子！租金每月{rent}，{day}拿钥匙。我要考虑哪些事？
- 大消息，我们要搬到{address}了。每月{rent}，{day}交钥匙。写进日历，再给我列个单子。
@flat.note
- 新家：{address}，每月{rent}，{day}拿钥匙。
@flat.plan
- 恭喜！交钥匙的日子{day}已经写进日历。{address}这边我会先做这些：¶¶{advice}¶¶其余的等双方签了合同再说。
  付押金我会提前{n4_9}天提醒你。
- 太好了。{address}交房，{day}，已经记上了。先列一张单子：¶¶{advice}¶¶建议跟{partner}一人一半，看着长，
  大多打个电话就能办。
@flat.advice
- {d3_12}以前书面退掉旧房，寄信按{n3_9}天算。
- 量好{n2_4}扇门和楼梯，{n190_240}厘米的沙发在{n90_130}厘米宽的楼梯口转不过来。
- 买{n40_90}个纸箱，三分之一要小的，装书用，每个{m3_9}，旧的更便宜。
- 跟房东一起抄表，{n3_6}块表都拍照。
- 问{n2_3}位邻居几点路上不堵，临时停车位要{m40_120}，办下来{n5_15}天。
- 快递地址提前{n5_10}天改，旧地址再留{n2_4}个月。
- 学校、银行、医院和{n3_7}家保险公司都要通知，信我已经写好了。
- 宽带提前{n3_6}周约，不然只能靠手机里那{n2_9}个G。
- 两边的租期重叠{n2_4}天，空房间刷一遍漆要{n5_9}个小时。
- 单独装一箱：水壶、{n4_6}个杯子、螺丝刀、胶带和那盏好用的灯。
@flat.quotes
- 搬家公司都回信了。去{address}的报价，帮我比一比？
- 邮箱里应该有{n3_3}份搬到{address}的报价，哪家最好？
@flat.quote
- 感谢咨询。{firm}搬家送到{address}，报价{price}，出{n3_6}个人，一辆{n18_40}立方米的车，含{n20_60}个纸箱，
  另含{n2_5}小时家具拆装，超时每小时{m90_260}。
@flat.compare
- {firm}：{price}，[全包|上楼另算|含打包]，有{n2_4}天我们合适。
@flat.compared
- 几家报价放在一起看：¶¶{list}¶¶差别主要在没写的部分。上楼费和保险三家都要问，保额低于{m20000_90000}的我不会签。
  单看价格，相差还不到{n3_6}个小时的人工。
@flat.mover
- 搬家就用{firm}，{price}。
- {firm}，{price}，可以。回复他们同意，另外几家谢绝。
@flat.hired
- {firm}定下来了，{price}，另外几家也客气地回绝了。接下来几周：¶¶{advice}
- 已经接受{firm}的报价，{price}。他们要先来看一下楼梯，大约{n20_40}分钟。在那之前：¶¶{advice}
@flat.later
- {address}交房推迟了，{new}才拿钥匙，不是{old}，油漆工没赶上。
- 房东来电话，{address}的钥匙{old}拿不到，要到{new}。
@flat.moved
- 有点麻烦，不过不要紧。交房改到{new}，也请{firm}往后排了。接下来要做的：¶¶{advice}
- 那就{new}拿钥匙。{firm}说可以改，不加钱。接着：¶¶{advice}
@gift.label
- {friend}的生日
- {friend}的[毕业典礼|画展开幕]
- {sibling}的生日
- {sibling}的[乔迁宴|银婚纪念]
- {colleague}的欢送会
- {colleague}的[入职十周年|孩子满月酒]
@gift.query
- 送给什么都不缺的人
- 做工好的小礼物
@gift.present
- 亚麻围裙
- 手工线装笔记本
- 铸铁锅
- 陶艺体验课
- 郁金香种球
- 单筒望远镜
- 木制象棋
- 谜题周刊一年订阅
- 胡桃木沙拉碗
- 装裱好的海岸地图
- 园艺剪刀
- 双人品茶会
@gift.shop
- {street}{firm}，包装要{n5_20}分钟
- {firm}，快递{n2_6}天
- {surname}师傅的工作室，开到{t17_19}
@gift.text
- [景德镇|苏州|大理]手工做的，一年{n30_400}件，每件有编号。
- {n80_120}位买家里有{n20_60}位买了第二次，多半送给[长辈|老师|邻居]。
- 占架子{n10_40}厘米，爱惜点能用{n6_30}年。
- 附一张卡片，能写{n20_60}个字。
- 没用过的，凭小票{n14_60}天内可退。
- 每{n12_50}个人里有一个想换颜色。
- 连盒子{n200_1900}克，运费{m8_30}。
@gift.ask
- {label}是{day}，我想送点什么，{limit}以内。有主意吗？
- 要给{label}准备礼物，日子是{day}，最多{limit}，不要代金券。
@gift.idea
- {present}，{price}。{about}
- {present}，大约{price}。{about}
@gift.advice
- 附一张卡片，写{n3_5}句以上，人家留着的往往是这个。
- 几个人合送的话，{n3_6}个人凑{m300_900}，谁也不觉得多。
- {d4_12}以前下单，再晚快递要{n4_8}天。
- 小票留到{d40_70}，以防万一。
@gift.offer
- {label}，我想到这几样：¶¶{list}¶¶另外：¶¶{more}
- 预算之内，有几个主意：¶¶{list}¶¶还有几句题外话：¶¶{more}
@gift.choose
- {label}就送{present}。记下来，免得送重了。
- {label}送{present}正合适，列到单子上。
@gift.note
- {label}：{present}。
@gift.chosen
- 列上了，{label}送{present}。我会提前{n5_9}天看物流，到时候告诉你什么时候包。
- 那就{present}。已经记在{label}名下，你说一声我就下单。
@gift.wrong
- 我给错日期了，{label}不是{old}，是{new}。
- 更正一下，我刚问过{partner}，{label}是{new}，{old}是错的。
@gift.corrected
- 改过来了，{label}是{new}。日历里原来写的{old}已经删掉。
- 谢谢，{label}现在是{new}，不再是{old}。快递还来得及。
@dish.starter
- 百里香烤南瓜
- 凉拌木耳
- 香橙拌甜菜
- 薄荷拌西葫芦
@dish.main
- 红薯炖扁豆
- 藏红花饭酿青椒
- 菌菇烩土豆
- 番茄迷迭香白豆
@dish.dessert
- 八角炖梨
- 桂皮煮李子
- 小豆蔻拌甜橙
- 葡萄干烤苹果
@dinner.label
- 请{friend}和{friend}的那顿晚饭
- 请{colleague}一组人的那顿饭
- 请{n2_9}0{n1_6}室邻居的午饭
- {child}第{n2_9}场演出后的夜宵
- {friend}去{city}之前的饯行饭
@dinner.allergen
- 花生
- 芹菜
- 芥末
- 贝类
- 猕猴桃
- 芝麻
- 大豆 = 黄豆
@dinner.where
- 家里，长桌
- 家里，不下雨就在露台
@dinner.ask
- {label}定在{day}，一共{count}个人。{guest}不能吃{allergen}。你看做什么菜好？
- 帮我张罗{label}：{day}，{count}个人。注意，{guest}对{allergen}过敏。做什么合适？
@dinner.menu
- {label}，我建议：¶¶1. {starter}¶2. {main}¶3. {dessert}¶¶都不含{allergen}，只要高汤和调料也看一眼成分，
  {guest}就能放心吃。口味上照顾到了你的要求：{diet}。几个小提示：¶¶{advice}
- 不放{allergen}，口味上按“{diet}”来想，菜单如下：¶¶1. {starter}¶2. {main}¶3. {dessert}¶¶
  有什么菜最好提前告诉{guest}，过敏的人心里有数才吃得踏实。当天用得上的：¶¶{advice}
@dinner.advice
- 主菜在{n70_90}度保温{n20_60}分钟，味道反而更好。
- 甜品前一天做，{n30_50}分钟，放凉。
- {t15_17}就摆好桌子，到{t18_19}你就腾不出手了。
- 每{n4_6}个人备{n2_3}瓶不含酒精的饮料。
- 蔬菜按每人{n250_380}克算，米饭{n60_90}克。
- 每道菜之间隔{n10_25}分钟，没人赶时间。
@dinner.shop
- 再给{label}列一张采购单，{count}个人的量。
- 按{count}个人列成采购单吧，{label}的花费别超过{m300_900}。
@dinner.item
- 南瓜或红薯{n2_9}公斤，{m12_40}
- 柠檬{n3_12}个，橙子{n2_9}个
- 扁豆或白豆{n400_900}克，{m8_26}
- 香草{n2_5}把，{m6_20}
- 梨或苹果{n6_14}个，要脆的
- 不带添加剂的高汤{n2_3}升
- 大米{n300_900}克，{m4_12}
- 番茄罐头{n2_6}罐，{m9_30}
- 橄榄油{n500_750}毫升，{m39_98}
- 主食{n2_4}份，买的时候问清成分
- 气泡水{n4_12}瓶
- 咖啡豆{n250_500}克，当天现磨
@dinner.list
- 做{starter}、{main}和{dessert}，要买：¶¶{list}¶¶建议叫送货，时段是{groceries}。
  每样都看一眼成分里有没有{allergen}，这张单子上最要当心的是高汤和主食。
@dinner.move
- {label}从{old}改到{new}。{reason}
- {label}要挪一下，{new}，不是{old}了。{reason}客人都知道了。
@dinner.moved
- 改到{new}了。菜单不变，{main}照做，送货也一起往后挪了。{guest}还没回话，{n2_4}天后我再问一次。
- {label}现在是{new}。日历改了，问过我的{n2_3}位客人也告诉了。容易坏的那一半，等到提前{n2_3}天再买。
@race.label
- {city}半程马拉松
- {street}十公里赛
- {firm}越野跑
@race.time
- {h}小时{m}分 = {h}:{m} = {h}小时{m}分钟
@race.tell
- 我报了{label}，{day}开跑。目标是{target}。给我排八周的计划。
- 定了，{label}，{day}。我想跑进{target}。该怎么练？
@race.week
- 轻松跑{n2_4}次，每次{n25_45}分钟，长距离一次{n8_17}公里。
- {n400_1200}米快跑{n3_8}组，间歇{n2_3}分钟，其余轻松跑。
- 坡道：上坡{n40_90}秒，{n5_10}趟；周日慢跑{n10_18}公里。
- 减量：跑{n2_3}次，每次{n20_35}分钟，睡够{n8_9}小时。
- {n9_14}公里中间，用比赛配速跑{n15_40}分钟。
@race.plan
- {label}我会这样练，一行是一周：¶¶{list}¶¶训练放在：{exercise}。{advice}
- {label}的计划：¶¶{list}¶¶按你的规矩，锻炼的时间是“{exercise}”，我就照这个排进去了。{advice}
@race.advice
- 每周加量不要超过百分之{n6_12}。
- 新鞋赛前要跑上{n40_80}公里，{d10_30}以前买好。
- 每{n4_6}公里喝{n150_300}毫升水，事先试过。
- 轻松日心率超过{n168_184}，就走{n3_6}分钟。
- 记下睡眠，连着{n2_3}晚没睡好，比少跑一次损失大。
- 感冒好了再歇{n4_9}天，从{n20_30}分钟开始。
- 髋部力量每周练{n2_3}次，每次{n10_20}分钟，比多跑一次划算。
@race.log
- {label}的训练：今天跑了{n8_19}公里，从第{n3_7}公里开始左小腿发紧。接着练还是歇？
- 汇报一下{label}的训练：这周跑了{n3_5}次，一共{n14_38}公里，最后{n2_3}次都下雨。很累，要改什么？
@race.answer
- 谢谢汇报。练到第{n4_7}周有这种情况很正常。我会这样做：¶¶{advice}¶¶{n3_6}天后还疼的话，看过医生再跑。
- 这个时候觉得累，说明计划起作用了，只要{n36_60}小时以内能缓过来。为了{label}，我建议：¶¶{advice}
@race.note
- {label}：目标改为{new}。
@race.change
- {label}我得说实话，{old}这个目标不对，改成{new}吧。
- {label}的新目标：{new}，不是{old}了。计划也调一下。
@race.changed
- {label}的目标现在是{new}。计划的变化没有想的那么大：¶¶{advice}
- 记下了，{new}。{label}快跑日的配速要变，其他是：¶¶{advice}
@buy.item
- 洗衣机
- 载货自行车
- 沙发床
- 洗碗机
- 升降桌
- 家庭帐篷
- 意式咖啡机
- 唱片机
- 缝纫机
- 书柜
- 除湿机
- 电钢琴
@buy.label
- {item}
@buy.where
- 家里，按两次门铃
- 家里，送到楼下
@buy.ask
- 家里要添{item}，{limit}以内。你帮我看看哪款值得买，我没空开{n20_60}个网页。
- 旧的{item}坏了。最多{limit}，能买到用得住{n4_8}年的吗？
@buy.option
- **{name}**，{price}：{detail}。{about}
@buy.offer
- 测评和差评我都看了。{item}剩下这几款：¶¶{list}¶¶{advice}
- 有四款可选：¶¶{list}¶¶{advice}{item}你喜欢哪一款，告诉我就下单。
@buy.advice
- 与其看那{n5_12}种用不上的功能，不如看零件好不好买。
- 最贵的不等于最好，{m1000_1500}和{m2000_3000}的在测评里几乎没差别。
- 送到门口收{m30_90}，送进屋收{m60_150}，拉走旧的收{m20_80}。
- {d14_40}以前拆了封也可以退。
- 箱子先留{n14_30}天。
@buy.choose
- 那就{name}，{price}。{item}{day}能送到，写进日历吧。
- 我下单了，{name}，{price}。{item}是{day}送货，那天上午给我空出来。
@buy.noted
- 记好了，{name}，{day}送到。{advice}
- {item}的送货写进日历了，{day}，型号是{name}。{advice}
@buy.move
- {item}要晚到，送货不是{old}，改成{new}了。
- 店家来信，{item}改到{new}送，不是{old}。真烦。
@buy.moved
- 改到{new}了。那天要有人在家等{n2_4}个小时，看日历{partner}有空。
- {item}的送货日期现在是{new}。再改一次的话，可以无理由取消。
"""
