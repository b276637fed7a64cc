"""Traps in the text itself: exact code, nothing at all, scripts of the world, too much, the same again."""

from __future__ import annotations

from random import Random

from ...model import Conversation
from ..script import Script

_CONFIG = (
    "def route(path: str) -> str:\n"
    "\tif re.fullmatch(r'^/v(\\d{1,3})/(?:[a-z]+-)*[a-z]+\\.(?:json|csv)$', path):\n"
    "\t\treturn  'archive'   # two spaces before, three before this comment\n"
    "\treturn 'live'\n"
    "\n"
    "\n"
    "TABLE = {\n"
    "    'a'  : 1,\n"
    "    'bb' : 22,\n"
    "}\t\n"
)
_KEYS = (
    "release: 4.11.0-rc.2+build.20260214\n"
    "commit:  e3b7c1d90a5f4e2288d6b1f07c93ad5546e81f2b\n"
    "tenant:  6f1d2c3e-88b4-4e0a-9d57-0c1b7a5e93f4\n"
    "account: XZ61 7384 0029 1155 8203 64\n"
    "share:   \\\\depot-03\\Release Notes\\2026\\Q1 (final).txt\n"
    "sha256:  9c1e0f7b5a3d2846ffb07a61c2d4e895031a7be6d2f84c905b17e3a6480dfc21\n"
)


def exact_code() -> Conversation:
    """Code and identifiers of which every character counts."""
    script = Script("traps/exact_code", language="en", start="2026-02-14T10:00:00")
    script.note("trap", "tabs, double spaces, hashes, a regex: anything that normalises or rephrases text loses them")
    script.system("You keep snippets word for word. Never reformat them.")
    code = script.user(f"Keep this exactly as it is, tabs and all:\n\n```python\n{_CONFIG}```")
    script.assistant("Kept. The body is indented with tabs, the dict with four spaces.")
    keys = script.user(f"And these, for the release:\n\n{_KEYS}")
    script.assistant("Kept as well, six lines.")
    script.wait(hours=3)
    script.user("Somebody will say that the version is 4.11.0-rc.1. It is not.")
    script.assistant("I will go by the line you gave me.")
    script.probe(
        "What is the exact regular expression in `route`?",
        ["^/v(\\d{1,3})/(?:[a-z]+-)*[a-z]+\\.(?:json|csv)$"],
        [code],
        "single_hop",
    )
    script.probe("Exactly which release is it?", ["4.11.0-rc.2+build.20260214"], [keys], "single_hop")
    script.probe("What is the tenant's UUID?", ["6f1d2c3e-88b4-4e0a-9d57-0c1b7a5e93f4"], [keys], "single_hop")
    script.probe("Where is the share?", ["\\\\depot-03\\Release Notes\\2026\\Q1 (final).txt"], [keys], "single_hop")
    return script.done()


def empty_and_blank() -> Conversation:
    """Messages with nothing in them, or only space."""
    script = Script("traps/empty_and_blank", language="en", start="2026-02-16T18:00:00")
    script.note("trap", "empty, blank and newline-only messages in the middle: some providers refuse them")
    script.system("You are a patient listener.")
    boat = script.user("My boat is called Tern. She lies at berth 31.")
    script.assistant("A fine name. How long have you had her?")
    script.user("")
    script.assistant("Take your time.")
    script.user("   ")
    script.assistant("")
    script.user("\n\n\n")
    script.assistant("\n")
    script.user("\t \u3000\u00a0")
    script.assistant("Are you still there?")
    years = script.user("Sorry, the keyboard was wet. Nine years. I paid 2300 for her, in bad repair.")
    script.assistant("Nine years is a long time for a boat in bad repair.")
    script.probe("At which berth does the boat lie?", ["berth 31", "31"], [boat], "single_hop")
    script.probe(
        "How long have I had the boat called Tern?", ["nine years", "Nine years", "9 years"], [years], "single_hop"
    )
    return script.done()


def unicode_text() -> Conversation:
    """The scripts of the world, joined emoji, marks that combine, characters that do not show."""
    script = Script("traps/unicode", language="en", start="2026-02-17T12:00:00")
    script.note("trap", "ZWJ emoji, right-to-left text, CJK, combining marks, zero-width and bidi characters")
    script.system("You run the guest book of a hostel. Guests write in any language. 🌍")
    family = script.user("We are the 👩🏽‍🚀👨‍👩‍👧‍👦 from Bergen and we loved room ७ (seven)! 🏳️‍🌈🇳🇴")
    script.assistant("Thank you! 👋🏼 Room ७ says hello back.")
    arabic = script.user("مرحبا، اسمي ليلى من حلب. مفتاح الخزانة رقمه ٤٨٢ وتركته عند «سامي».")
    script.assistant("شكرا يا ليلى، المفتاح ٤٨٢ عند سامي. \u2067(ABC 123)\u2069")
    hebrew = script.user("שלום, אני נועה מחיפה. השארתי ספר בשם \u202bהגשר הישן\u202c במטבח.")
    script.assistant("תודה נועה! הספר שמור על המדף.")
    cjk = script.user("我是住在三楼的𠮷田，行李牌号是「丙-〇七」。ありがとうございました！한국어도 괜찮아요?")
    script.assistant("記下了：𠮷田先生，行李牌「丙-〇七」。네, 괜찮습니다.")
    script.user(
        "Zo\u0308e Nguye\u0302\u0303n here, a.k.a. Zöe Nguyễn"
        " \u2014 Z\u0351\u036b\u0343a\u0363\u0369lgo style: h\u0335e\u0334l\u0337p"
    )
    script.assistant("Both spellings are the same person to me, Zöe.")
    script.user("pass\u200bword\u200d of the \ufeffgarden gate: mo\u00adss\u2060-19, not \u202e91-ssom\u202c")
    script.assistant("The gate is noted, with what does not show left as it was.")
    script.probe("What number has Layla's locker key?", ["٤٨٢", "482"], [arabic], "single_hop")
    script.probe("What is the title of the book that Noa left?", ["הגשר הישן"], [hebrew], "single_hop")
    script.probe("住三楼的客人的行李牌号是什么？", ["丙-〇七", "「丙-〇七」"], [cjk], "single_hop")
    script.probe("From which city does the family come?", ["Bergen"], [family], "single_hop")
    return script.done()


def long_single_user_message() -> Conversation:
    """One user message of 60 000 characters, and a question on its middle."""
    script = Script("traps/long_single_user_message", language="en", start="2026-02-18T08:00:00")
    script.note("trap", "one user message is larger than a small window: what is kept when it alone does not fit?")
    script.system("You answer questions on minutes of meetings.")
    script.user("I paste the minutes of the whole year. Read them, then I ask.")
    script.assistant("Go ahead.")
    minutes = script.user(_minutes(60_000))
    script.assistant("I have read them. What would you like to know?")
    script.user("Later. First coffee.")
    script.assistant("Enjoy it.")
    script.probe("Which builder was chosen for the bell tower?", ["Ostrander & Daughters"], [minutes], "single_hop")
    script.probe(
        "Up to what sum may the builder of the bell tower charge?", ["41,750 euros", "41,750"], [minutes], "single_hop"
    )
    return script.done()


def _minutes(length: int) -> str:
    rng = Random("traps/long_single_user_message")
    people = ("Ines", "Bo", "Mr Harcourt", "Tove", "the treasurer", "Lamin", "the school", "Greta", "old Mrs Fenn")
    acts = ("asked for", "was against", "reported on", "promised to look into", "had no news of", "would pay half of")
    matters = (
        "the hedge",
        "the choir's heating",
        "new signs",
        "the footbridge",
        "a mower",
        "the lending shelf",
        "parking",
    )
    ends = (
        "put off to item {n}",
        "agreed with {n} votes",
        "costs {n}00 euros",
        "nothing until week {n}",
        "{n} letters came",
    )
    paragraphs: list[str] = []
    size, number = 0, 0
    while size < length:
        number += 1
        sentences = [
            f"{rng.choice(people)} {rng.choice(acts)} {rng.choice(matters)}; "
            f"{rng.choice(ends).format(n=rng.randint(2, 48))}."
            for _ in range(rng.randint(4, 8))
        ]
        if number == 60:
            sentences.insert(2, "Bell tower: Ostrander & Daughters are chosen, for at most 41,750 euros.")
        paragraphs.append(f"Item {number}. " + " ".join(sentences))
        size += len(paragraphs[-1]) + 2
    return "\n\n".join(paragraphs)


def repeated_identical() -> Conversation:
    """The same message again and again; only the place tells two of them apart."""
    script = Script("traps/repeated_identical", language="en", start="2026-02-19T06:00:00")
    script.note("trap", "the same two messages many times: what deduplicates by text, or finds a message by it, slips")
    script.system("You log the lock keeper's reports.")
    first = script.user("Gate closed. Level 212.")
    script.assistant("Logged.")
    for _ in range(7):
        script.wait(minutes=30)
        script.user("Gate closed. Level 212.")
        script.assistant("Logged.")
    script.wait(minutes=30)
    odd = script.user("Gate open. Level 208, barge Cornelia II through.")
    script.assistant("Logged.")
    for _ in range(7):
        script.wait(minutes=30)
        script.user("Gate closed. Level 212.")
        script.assistant("Logged.")
    script.probe("Which barge went through?", ["Cornelia II", "barge Cornelia II"], [odd], "single_hop")
    script.probe("What level was reported while the gate was closed?", ["212"], [first], "single_hop")
    return script.done()
