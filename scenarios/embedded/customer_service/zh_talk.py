"""The rules of the shop and how customer and agent of customer_service talk, in Chinese."""

from __future__ import annotations

SYSTEM = """你是{shop}的客服。{shop}是一家经营办公电子产品的网上商城，\
你负责企业客户{company}（客户编号 {customer}）。\
与你对话的是{buyer}，负责为所有门店统一采购。每个工具的返回结果都带有当前日期和时间。

一、身份核验
1. 每到新的一天，在查询或修改任何信息之前先询问口令，并用 `verify_identity` 核对。
2. 口令错误 {tries} 次即结束会话，请对方拨打客服电话，服务时间为 7:30 至 19:00。
3. 不得在回复中写出口令、完整银行账号或卡号，只能给出后四位。
4. 不向收货联系人透露订单金额；对方自称是其他人时，一律请采购负责人本人来沟通。

二、退货
1. 签收后 {return_days} 天内可以退货，未拆封的商品全额退款。
2. 已拆封的商品扣除价款的 {fee}%；耳机和墨盒一经拆封不予退货。
3. 退货面单 {label_days} 天内有效，过期重新开具收费 {label_fee}。
4. 退款可在 {bank_days} 个工作日内退回银行账户，\
或立即转为商城余额并额外赠送 {bonus}%。由客户选择，包裹到仓之前可以更改。
5. 一个退货单号只对应一种商品；同一订单退多种商品时分别开单，面单合并发送。

三、破损与保修
1. 运输破损须在 {damage_days} 天内反馈。金额不到 {keep_limit}的商品不要求寄回。
2. 保修期为签收后 {warranty_months} 个月，电池和电源为 {battery_months} 个月。
3. 维修需要 {repair_days} 个工作日，超时应提供备用机。
4. 进液、摔坏不在保修范围内，可以付费维修，须先报价、客户同意后再取件。

四、配送
1. 送货日期可免费改一次，之后每次收费 {move_fee}，最多推迟 {move_days} 天。
2. 每延误一整天补偿 {delay_credit}，每单最多 {delay_cap}，应主动告知客户。
3. 包裹交给承运商之前可以修改地址，修改后须把新地址完整复述一遍。
4. 大件商品送货上门不上楼；需要搬运上楼的，提前一天在订单备注中写明楼层和电梯情况。

五、款项
1. {approval_limit}以内的退款可自行处理，超出的告知客户需同事在 {hours} 小时内复核。
2. 始终说明金额、参考号和到账时间，金额均含税。
3. 发票上的采购单号可在 {invoice_days} 天内更正，更正后发票换新号码。
4. 余额不能提现，也不能转给其他客户编号；月底对账时与发票逐笔核销。

六、沟通方式
1. 先查询再回答，对规则没有把握时用 `search_policy`，不承诺规则以外的事情。
2. 一次处理一件事。客户改变主意时，把现在有效的安排重复一遍。
3. 简短、礼貌，不用表情符号。日期写作“2026 年 3 月 4 日”，金额写作“149.90 元”。
4. 查到的编号原样给出，不要省略中间的数字；客户念错编号时，先核对再操作。"""

FRAMES: dict[str, tuple[str, ...]] = {
    "ask_identity": (
        "您好，这就为您处理。今天是新的一天，请先提供一下账户口令。",
        "好的，我来查。查看账户之前要做今天的核验，请问口令是什么？",
        "没问题。按规定先核对一下身份，请告诉我账户的口令。",
    ),
    "give_identity": ("好的，口令是{word}。", "{word}", "口令：{word}，客户编号 {customer}。", "还是那个，{word}。"),
    "reason": (
        "开放式办公区用起来太吵",
        "要用的同事已经离职了",
        "和我们现有的支架不配",
        "有人下单时选错了颜色",
        "部门预算有调整，不能留了",
        "在仓库里又翻出一箱同样的",
        "线太短，够不到我们的工位",
    ),
    "damage": (
        "箱角被压扁了，外壳也裂了。",
        "一拿起来里面就哗啦响，还掉了一个脚垫。",
        "快递员把箱子放在雨里，现在开不了机。",
        "正面有一道十厘米长的划痕。",
        "封条是破的，配件少了一部分。",
    ),
    "fault": (
        "开机十分钟左右就自动关机",
        "左侧边缘有一条线一直在闪",
        "换了好几根线都充不进电",
        "从上周开始有异响",
        "插在哪台电脑上都识别不到",
        "每隔几小时就断网",
    ),
    "look": ("", "", "我查一下。", "请稍等。", "稍等，我看看订单。", "这就打开订单。"),
    "open_status": (
        "{branch}订的{product}到哪儿了？{contact}一直在问我。",
        "麻烦查一下{branch}的配送，就是有{product}的那一单。",
        "{branch}在等{product}，{ago} 天前下的单，有消息吗？",
        "你好，我想知道{product}什么时候能送到{branch}。",
    ),
    "answer_status": (
        "{product}在订单 {order} 里，由{carrier}承运，运单号 {tracking}，预计 {promised}送到{branch}。",
        "查到了：订单 {order} 已交给{carrier}，运单号 {tracking}，计划 {promised}送达。",
        "{branch}的订单 {order} 正在路上，{carrier}的运单号是 {tracking}，预计送达日期为 {promised}。",
    ),
    "ask_move": (
        "那天店里没人，{order} 能改到 {date}送吗？",
        "不巧，那天门店关门，请改到 {date}。",
        "嗯，{contact}那天在展会上，{date}可以。",
    ),
    "answer_move": (
        "改好了，{order} 由 {old}改为 {date}送达，这次免费，参考号 {ref}。",
        "已把 {order} 的送货日期从 {old}改到 {date}（参考号 {ref}），承运商会通知{contact}。",
    ),
    "open_return": (
        "订单 {order} 里的{product}我们想退 {count} 件，{reason}。",
        "换个事：{order} 中的{product}要退 {count} 件，{reason}，现在还来得及吗？",
        "{order} 的{product}能退 {count} 件吗？主要是{reason}，都还没拆封。",
    ),
    "answer_return": (
        "可以退。商品是 {delivered}签收的，还在 {return_days} 天之内，未拆封，{count} 件共退 {amount}。"
        "您要退回银行账户，还是转成商城余额，多送 {bonus}%？",
        "没问题，签收日期是 {delivered}，没有超过 {return_days} 天，{count} 件合计 {amount}。"
        "请问退到银行账户，还是转为余额并赠送 {bonus}%？",
    ),
    "ask_bank": ("退到银行账户吧，会计不喜欢余额。", "还是老样子，银行转账。", "请退回我们的账户。"),
    "answer_bank": (
        "退货单已建好，编号 {rma}，面单发到了 {mail}，有效期至 {until}。"
        "包裹到仓后 {bank_days} 个工作日内，{amount}会退到尾号 {bank} 的账户。",
        "您的退货编号是 {rma}，面单在 {until}之前有效。收到包裹后，{amount}退回尾号 {bank} 的账户。",
    ),
    "ask_credit": (
        "关于 {rma}：老板觉得转余额加赠送更划算，还能改吗？",
        "{rma} 我改主意了，还是转成商城余额吧。",
        "再说一下退货 {rma}，我们要余额，不要转账了。",
    ),
    "answer_credit": (
        "已更改：{rma} 改为退成商城余额，含赠送共 {credit}，不再走银行转账。",
        "好的，{rma} 的退款方式现在是商城余额（含赠送 {credit}），取消银行转账。",
    ),
    "open_damaged": (
        "{order} 里的{product}送到{branch}时就是坏的。{damage}",
        "{branch}那边有坏消息：{damage}是订单 {order} 里的{product}。",
        "{order} 需要你们处理一下。{damage}我说的是{product}。",
    ),
    "answer_damaged": (
        "非常抱歉。您在 {damage_days} 天内反馈，可以选择补发一件{product}，或者退款 {amount}。"
        "在我们通知之前，破损件不用寄回。",
        "真对不起。{product}可以退您 {amount}，也可以重新发一件，您看哪种方便？",
    ),
    "ask_refund": ("退款吧，我们已经在本地另买了。", "那就退钱。", "退款，{contact}等不及第二件了。"),
    "answer_refund": (
        "{order} 已退款 {amount}，参考号 {ref}，{bank_days} 个工作日内到账。",
        "订单 {order} 的退款 {ref} 已办理，金额 {amount}，退到尾号 {bank} 的账户。",
    ),
    "over_limit": (
        "金额超过 {approval_limit}，同事会在 {hours} 小时内复核。",
        "由于超出 {approval_limit}，需要第二人复核，最长 {hours} 小时。",
    ),
    "open_address": (
        "{branch}搬家了，新地址是{address}，以后的订单都改成这个。",
        "请更新一下{branch}的收货地址，从现在起是：{address}。",
        "{branch}有新地址了：{address}。",
    ),
    "answer_address": (
        "{branch}的地址已保存为{address}，请您再逐字核对一遍。",
        "谢谢，{branch}现在的地址是{address}，麻烦确认一下有没有写错。",
    ),
    "ask_fix": (
        "不好意思，是我弄错了，{branch}的正确地址是{address}。",
        "不太对，应该是{address}，{contact}刚告诉我的。",
        "等一下，{branch}说是{address}。",
    ),
    "answer_fix": (
        "已更正，{branch}现在只有{address}有效。",
        "没关系，还没有用到之前那个。{branch}：{address}。",
    ),
    "open_invoice": (
        "{order} 的发票上没有采购单号，请加上 {po}。",
        "{order} 的发票被会计退回来了，要写采购单号 {po}。",
    ),
    "answer_invoice": (
        "{order} 的发票已重开，新发票号 {invoice}，采购单号为 {po}，已发到您的邮箱。",
        "好了，发票 {invoice} 替换 {order} 原来的发票，采购单号写的是 {po}。",
    ),
    "ask_po": (
        "抱歉，我给错了，{order} 的采购单号是 {po}。",
        "又是会计那边：{order} 应该写 {po}，不是我之前说的那个。",
    ),
    "answer_po": (
        "已再次更正，{order} 的发票 {invoice} 现在写的是 {po}。",
        "好的，改为 {po}。{order} 的有效发票是 {invoice}，之前那张请作废。",
    ),
    "open_warranty": (
        "{branch}有一台{product}{fault}，序列号 {serial}，还在保修期吗？",
        "我们有台{product}（{serial}）坏了，{fault}，怎么处理？",
    ),
    "answer_warranty": (
        "序列号 {serial} 的设备是 {delivered}签收的，保修到 {until}。需要安排上门取件维修吗？",
        "好消息，{serial} 的保修期到 {until}。如果需要，我可以安排取件维修。",
    ),
    "ask_repair": ("好的，请到{branch}来取，{contact}全天都在。", "麻烦安排，越快越好。"),
    "answer_repair": (
        "维修单号 {ticket}，{carrier}将在 {date}上门取件，维修大约需要 {repair_days} 个工作日。",
        "已安排：维修单 {ticket}，{date}到{branch}取件，{repair_days} 个工作日后送回。",
    ),
    "open_delay": ("订单 {order} 又晚了好多天，你们怎么说？", "{branch}投诉 {order} 送晚了，有补偿吗？"),
    "answer_delay": (
        "您说得对，{order} 承诺 {promised}送到，实际 {delivered}才签收。按规定应补偿 {amount}，要现在登记吗？",
        "很抱歉。原定 {promised}，实际签收 {delivered}，应补偿 {amount}。可以为您登记吗？",
    ),
    "ask_take": ("好，请登记。", "谢谢，那就这么办。", "行，麻烦了。"),
    "answer_take": (
        "{order} 的补偿 {amount}已登记，参考号 {ref}，从下一张发票中抵扣。",
        "登记好了：{order}，{amount}，参考号 {ref}。",
    ),
    "open_cancel": (
        "请把{product}从订单 {order} 里去掉，我们不要了。",
        "{order} 里只取消{product}可以吗？其余的照常发。",
    ),
    "answer_cancel": (
        "{product}已取消，{order} 其余商品不变，{amount}原路退回，参考号 {ref}。",
        "办好了，订单 {order} 不再包含{product}，已退 {amount}（参考号 {ref}）。",
    ),
    "open_total": (
        "我写报告要用：{order} 和 {order2} 一共退了多少钱？",
        "帮我加一下，{order} 和 {order2} 总共退回多少？",
    ),
    "answer_total": (
        "{order} 是 {amount}，{order2} 是 {amount2}，合计 {total}。",
        "{order} 的 {amount}加上 {order2} 的 {amount2}，一共 {total}。",
    ),
    "open_recall_tracking": (
        "你之前给过我 {order} 的运单号，是多少来着？",
        "我的记录丢了，{order} 在承运商那边的单号是什么？",
    ),
    "answer_recall_tracking": ("{order} 的是 {value}。", "之前说过的，{order} 的运单号是 {value}。"),
    "open_recall_rma": (
        "{order} 里{product}的退货编号是什么来着？",
        "提醒我一下 {order} 的退货编号，就是{product}那件。",
    ),
    "answer_recall_rma": ("是 {value}。", "{order} 的退货编号是 {value}。"),
    "event": (
        "企业门户已接收订单",
        "已核对账期，{days} 天",
        "{depot}仓已预留库存 {n} 件",
        "{n} 号库 {shelf} 货架已拣货",
        "{n} 号工位已打包，重量 {weight} 公斤",
        "等待同一订单的第二个包裹",
        "{n} 号口已打印面单",
        "已交给{carrier}",
        "{depot}分拨中心已分拣",
        "已向{contact}发送送货时段通知",
    ),
    "order_note": (
        "收货口在楼后，请按两次铃。",
        "尽量在上午十一点之前送。",
        "成本中心 {n}{n2}00。",
        "请放到 {n} 楼前台。",
        "整托到货需要尾板车。",
        "送货前半小时请致电{contact}。",
    ),
}
