"""Pairs of answers that differ by little: one is right, the other is not. Our own, English and Chinese."""

from __future__ import annotations

from typing import NamedTuple


class Pair(NamedTuple):
    """A question, what is accepted, answers that are right and answers that are wrong."""

    question: str
    accepted: tuple[str, ...]
    right: tuple[str, ...]
    wrong: tuple[str, ...]


DATES = (
    Pair(
        "When did the ferry open?",
        ("8 May 2023",),
        (
            "May 8, 2023",
            "On the 8th of May, 2023.",
            "2023-05-08",
            "It opened on May 8th 2023.",
            "2023年5月8日",
            "8.5.2023",
        ),
        ("9 May 2023", "8 June 2023", "8 May 2022", "It opened on the 18th of May, 2023.", "2023-05-18"),
    ),
    Pair(
        "What year was the mill built?",
        ("1978",),
        ("It was built in 1978.", "1978", "In June 1978.", "The mill, in a valley of 3,000 people, dates from 1978"),
        ("1987", "In 1979.", "The 1980s.", "It cost 1,978,000 crowns.", "19th century"),
    ),
    Pair(
        "When was the chapel founded?",
        ("18th century",),
        ("In the eighteenth century.", "1754", "18世纪"),
        ("17th century", "In 1854.", "the nineteenth century"),
    ),
    Pair(
        "When did Mara run the race?",
        ("The Sunday before 25 May 2023",),
        ("21 May 2023", "On Sunday, May 21, 2023.", "the sunday before 25 May 2023"),
        ("25 May 2023", "On 14 May 2023.", "the Sunday after 25 May 2023"),
    ),
    Pair(
        "When is the handover?",
        ("5 June", "2026-06-05"),
        ("June 5", "5th of June", "On 5 June 2026.", "6月5日"),
        ("6 May", "5 July", "15 June", "June 2027"),
    ),
    Pair(
        "On which day was the parcel sent?",
        ("12 March 2021",),
        ("March 12, 2021", "12/03/2021"),
        ("March 2021", "2021", "11 March 2021"),
    ),
    Pair(
        "合同是哪一天签的？",
        ("2025年4月21日", "4月21日"),
        ("4月21号", "二零二五年四月二十一日签的。", "2025-04-21", "April 21, 2025"),
        ("4月12日", "2025年4月22日", "5月21日", "二〇二五年四月十一日"),
    ),
    Pair("他哪年出生？", ("1980年",), ("一九八〇年", "出生于1980年3月。", "1980"), ("1908年", "1981年", "八十年前")),
)

NUMBERS = (
    Pair(
        "How long is the film?",
        ("120 minutes",),
        ("two hours", "2 h", "It runs for 120 minutes.", "one hundred and twenty minutes", "2小时"),
        ("12 minutes", "120 hours", "two minutes", "three hours", "210 minutes"),
    ),
    Pair(
        "How much did the bridge cost?",
        ("$3.5 million",),
        (
            "3,500,000 dollars",
            "It cost $3.5m.",
            "3.5 million dollars",
            "$3,500,000",
        ),
        ("$35 million", "3.5 billion dollars", "€3.5 million", "$3,500"),
    ),
    Pair(
        "How many episodes are there?",
        ("291 episodes", "291"),
        ("There are 291.", "two hundred and ninety-one", "二百九十一集"),
        ("292", "219 episodes", "29", "2910", "There are 29 or so."),
    ),
    Pair("How many molecules?", ("6",), ("six", "Six molecules.", "6个"), ("16", "seven", "60", "sixty")),
    Pair(
        "What share of voters stayed at home?",
        ("45%",),
        ("45 percent", "forty-five per cent", "百分之四十五"),
        ("54%", "4.5%", "55 percent"),
    ),
    Pair(
        "How far is it?",
        ("5 km",),
        ("5 kilometres", "5000 m", "five kilometers"),
        ("5 miles", "5 kg", "50 km", "15 km"),
    ),
    Pair("How many times did they win?", ("2",), ("twice", "They won two times."), ("once", "three times", "12 times")),
    Pair(
        "How old is the tower?",
        ("1,250 years",),
        ("1250 years old", "It is 1,250 years old."),
        ("1,520 years", "125 years", "1,250 days"),
    ),
    Pair("多少钱？", ("320元",), ("三百二十元", "320块", "一共320.00元"), ("302元", "三千二百元", "230元", "320美元")),
    Pair("一共来了多少人？", ("1.2万人",), ("12000人", "一万两千人", "12,000"), ("1200人", "两万一千人", "12万人")),
    Pair(
        "会议多长时间？",
        ("90分钟",),
        ("一个半小时", "九十分钟", "1.5小时", "90 minutes"),
        ("九分钟", "90秒", "19分钟"),
    ),
    Pair("增长了多少？", ("15%",), ("百分之十五", "15 percent"), ("百分之五十", "1.5%", "15元")),
)

NAMES = (
    Pair(
        "Who wrote the letters?",
        ("Kelli Giddish",),
        ("kelli giddish", "They were written by Kelli Giddish.", "Ms. Giddish", "Kelli Marie Giddish", "Giddish"),
        ("Kelli Garner", "Mariska Hargitay", "Kelly Clarkson", "Amy Giddish"),
    ),
    Pair(
        "Who got the first prize?",
        ("Wilhelm Conrad Röntgen",),
        (
            "Wilhelm Röntgen",
            "W. C. Rontgen",
            "Röntgen",
            "wilhelm conrad rontgen",
        ),
        ("Wilhelm Wien", "Conrad Veidt", "Marie Curie"),
    ),
    Pair(
        "Who is the mayor?",
        ("Robert James Miller",),
        ("Bob Miller", "Mayor Robert Miller", "Robert J. Miller"),
        ("Robert James", "James Muller"),
    ),
    Pair(
        "Who led them?",
        ("Elizabeth II",),
        ("Queen Elizabeth II", "Elizabeth the Second"),
        ("Elizabeth I", "Elizabeth III", "Charles III"),
    ),
    Pair(
        "Where did they meet?",
        ("Tulsa, Oklahoma",),
        ("In Tulsa, Oklahoma.", "Tulsa", "They met in the city of Tulsa in Oklahoma"),
        ("Norman, Kansas", "Dallas, Texas"),
    ),
    Pair(
        "Which country?",
        ("United States of America",),
        ("the USA", "United States", "The U.S."),
        ("United Kingdom", "Mexico"),
    ),
    Pair(
        "谁写了这封信？",
        ("魏怀瑜",),
        ("是魏怀瑜写的。", "魏怀瑜", "作者：魏怀瑜"),
        ("严怀瑜", "魏怀玉", "魏瑜", "怀瑜"),
    ),
    Pair("公司在哪个城市？", ("福州",), ("福州市", "在福州。", "公司位于福建省福州市"), ("广州", "杭州", "惠州")),
    Pair(
        "收货地址是什么？",
        ("东陵市青苔路 115 号",),
        ("东陵市青苔路115号", "地址是东陵市青苔路115号。"),
        ("东陵市竹园路115号", "东陵市青苔路151号"),
    ),
)

LISTS = (
    Pair(
        "Which three instruments does she play?",
        ("violin, cello and flute",),
        ("Flute, violin, cello", "She plays the cello, the flute, and also the violin."),
        ("violin and cello", "violin, cello and piano", "the harp"),
    ),
    Pair(
        "Name two of the ports.",
        ("Bremen, Kiel, Rostock, Emden",),
        ("Kiel and Emden", "Rostock, Bremen, Kiel"),
        ("Kiel", "Hamburg and Kiel"),
    ),
    Pair("Which books did he buy?", ("Emma and Persuasion",), ("Persuasion and Emma.",), ("Emma", "Emma and Ulysses")),
    Pair(
        "他买了哪些水果？",
        ("苹果、香蕉和梨",),
        ("梨、苹果、香蕉", "他买了香蕉、苹果和梨。"),
        ("苹果和香蕉", "苹果、香蕉和桃"),
    ),
)

STANCES = (
    Pair(
        "What is the capital?",
        ("Paris",),
        ("Paris", "It is Paris, not London.", "The capital is Paris.", "It's not London but Paris."),
        (
            "It is not Paris.",
            "The capital isn't Paris.",
            "London",
            "Anything other than Paris.",
            "Not Paris, but London.",
        ),
    ),
    Pair(
        "Is the museum open on Monday?",
        ("No",),
        ("No, it is closed.", "It is not open on Monday.", "no", "Nope.", "It isn't."),
        ("Yes", "Yes, from ten to six.", "It is open on Mondays.", "I don't know."),
    ),
    Pair(
        "Did she sell the boat?",
        ("Yes",),
        ("Yes, last year.", "yes", "Yeah, she sold it."),
        ("No", "She did not sell it.", "Never.", "It is unknown."),
    ),
    Pair(
        "会议取消了吗？",
        ("取消了", "是的"),
        ("是的，取消了。", "取消了", "对，已经取消。"),
        ("没有取消。", "没有", "不，照常举行。"),
    ),
    Pair("他会游泳吗？", ("不会",), ("他不会游泳。", "不会", "不，他不会。"), ("会", "他会游泳。", "是的")),
    Pair("首都是哪里？", ("北京",), ("北京", "首都是北京。", "不是上海，是北京。"), ("不是北京。", "上海", "并非北京")),
    Pair(
        "What is the dog called?",
        ("Rex",),
        ("Rex", "The dog is called Rex.", "rex!"),
        (
            "I don't know.",
            "The conversation does not mention the name of the dog.",
            "",
            "???",
            "Max",
            "What is the dog called?",
        ),
    ),
    Pair(
        "狗叫什么名字？",
        ("旺财",),
        ("旺财", "它叫旺财。"),
        ("不知道", "无法回答这个问题", "来福", "对话中没有提到狗的名字。"),
    ),
)

CODES = (
    Pair(
        "What is the tracking number?",
        ("RQ278344843",),
        ("rq278344843", "It is RQ278344843."),
        ("RQ278344834", "RQ27834484", "278344843", "RQ2783448430"),
    ),
    Pair(
        "What is the function called?",
        ("tell_one_cabin",),
        ("`tell_one_cabin`", "tell_one_cabin()"),
        ("tell_one_boat", "tell_cabin_one", "tell_two_cabin"),
    ),
    Pair("What is the refund's id?", ("RF-110902",), ("RF-110902", "rf 110902"), ("RF-110920", "RP-110902", "RF-1109")),
    Pair("Which room?", ("room 7", "7"), ("Room 7.", "7", "in room seven"), ("room 17", "room 8", "77")),
    Pair("运单号是多少？", ("LG490210987",), ("LG490210987", "运单号：LG490210987。"), ("LG490210978", "LG49021098")),
    Pair(
        "Which version?",
        ("28.0.0.137",),
        ("Version 28.0.0.137", "28.0.0.137."),
        ("28.0.0.173", "28.0.0", "28.0.0.1370"),
    ),
)

SECOND = (
    Pair("When did she start her job?", ("March 2019",), ("In March of 2019", "2019年3月"), ("May 2019", "March 2018")),
    Pair("When was the treaty signed?", ("1648",), ("On 24 October 1648", "1648 AD"), ("1468", "1684")),
    Pair("When did it fall?", ("476 AD",), ("in AD 476", "476 CE", "the year 476"), ("467 AD", "476 BC", "1476")),
    Pair("How long did the trip take?", ("3 weeks",), ("three weeks", "21 days"), ("3 days", "3 months", "13 weeks")),
    Pair("What time does it open?", ("9:30 am",), ("At 9:30 am", "9:30 AM"), ("9:30 pm", "10:30 am", "9:13 am")),
    Pair("What is the temperature?", ("-5 °C",), ("-5°C", "minus 5 degrees Celsius"), ("5 °C", "-15 °C", "-5 °F")),
    Pair("How tall is it?", ("324 metres",), ("324 m", "0.324 km"), ("342 metres", "324 feet", "32.4 metres")),
    Pair("What is the price?", ("£180", "180 pounds"), ("180 GBP", "£180.00"), ("$180", "£108", "£1,800")),
    Pair("What fraction?", ("two thirds",), ("two thirds", "2/3"), ("one third", "3/2")),
    Pair("Who directed it?", ("Christopher Nolan",), ("Nolan", "Chris Nolan"), ("Jonathan Nolan", "Christopher")),
    Pair("Who is her sister?", ("Anna Müller",), ("Anna Muller", "ANNA MÜLLER"), ("Hanna Müller", "Anna Miller")),
    Pair("What is the ship's name?", ("Cornelia II",), ("the Cornelia II", "Cornelia 2"), ("Cornelia", "Cornelia III")),
    Pair("What colour is it?", ("dark green",), ("Dark green", "It's painted dark green."), ("light green", "red")),
    Pair("What is his job?", ("software engineer",), ("He is a software engineer.",), ("civil engineer", "teacher")),
    Pair(
        "Which city, Lyon or Nice?", ("Lyon",), ("Lyon", "They moved to Lyon"), ("Nice", "Nice, not Lyon", "not Lyon")
    ),
    Pair("Does he eat meat?", ("No, he is a vegetarian",), ("No.", "He does not eat meat"), ("Yes", "He eats meat")),
    Pair("Can we park there?", ("Yes, after six",), ("Yes.", "Yes, after six"), ("No", "you cannot park there")),
    Pair(
        "What is the email?", ("ana@example.org",), ("It's ana@example.org.",), ("anna@example.org", "ana@example.com")
    ),
    Pair("What is the number?", ("0210 691 8116",), ("0210 691 8116", "0210-691-8116"), ("0210 691 8161",)),
    Pair("What is the default?", ("5",), ("5", "five retries"), ("15", "50", "0.5")),
    Pair("他住在哪条街？", ("青苔路",), ("青苔路", "住在青苔路上"), ("竹园路", "青石路")),
    Pair("会议在星期几？", ("星期三",), ("周三", "礼拜三", "在星期三开会"), ("星期四", "周日")),
    Pair("她喜欢喝什么？", ("绿茶",), ("绿茶", "她爱喝绿茶"), ("红茶", "她不喝绿茶")),
    Pair("房租多少？", ("每月4500元",), ("4500元", "四千五百元一个月"), ("5400元", "450元", "每月4500美元")),
    Pair("他什么时候到？", ("下午三点",), ("下午3点",), ("上午三点", "下午四点")),
    Pair("狗有几只？", ("三只",), ("3只", "三只狗"), ("两只", "十三只", "30只")),
    Pair("他同意了吗？", ("同意了",), ("同意", "是的，他同意了"), ("不同意", "没有", "没同意")),
    Pair("距离多远？", ("10公里",), ("十公里", "10 km", "10000米"), ("10米", "100公里", "十一公里")),
)

PAIRS = (*DATES, *NUMBERS, *NAMES, *LISTS, *STANCES, *CODES, *SECOND)
