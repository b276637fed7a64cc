"""Small conversations that break context libraries, each for one reason. They have no seed and no length.

Each is written by a function of its name. Long texts are in `data/texts.txt`; short lines stay here, where the order of
the messages can be seen, and so do invisible characters.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from ...model import Conversation, Tool, ToolCall
from ..forms import fill, load, say
from ..script import Script

_CITIES = (
    Tool("weather", "Weather of a city.", '{"type":"object","properties":{"city":{"type":"string"}}}'),
    Tool("trains", "Next train to a city.", '{"type":"object","properties":{"to":{"type":"string"}}}'),
    Tool("rooms", "Free rooms in a city.", '{"type":"object","properties":{"city":{"type":"string"}}}'),
)
_SHELL = (Tool("run", "Runs a shell command.", '{"type":"object","properties":{"command":{"type":"string"}}}'),)

Maker = Callable[[], Conversation]
TRAPS: list[Maker] = []
"""Makers of the traps, in a fixed order."""


def make_all() -> tuple[Conversation, ...]:
    """Return every trap, `traps/enormous_result` (about 400 000 characters in one tool result) among them."""
    return tuple(trap() for trap in TRAPS)


def _trap(start: str, reason: str, tools: tuple[Tool, ...] = ()) -> Callable[[Callable[[Script], None]], Maker]:
    """Turn a function that writes a conversation, from an ISO time on, into the maker of a trap, and register it."""

    def register(write: Callable[[Script], None]) -> Maker:
        def make() -> Conversation:
            script = Script(f"traps/{write.__name__}", language="en", start=start, tools=tools)
            script.note("trap", reason)
            write(script)
            return script.done()

        TRAPS.append(make)
        return make

    return register


@_trap(
    "2026-02-09T11:00:00",
    "three calls in one message, results in another order: calls and results must stay together",
    _CITIES,
)
def parallel_tool_calls(script: Script) -> None:
    """Write three calls in one message whose results come in another order, twice."""
    script.system("You plan short journeys. Use the tools, several at once where you can.")
    script.user("I have Friday off. Is Graz worth it? Weather, train and a room, please.")
    graz = [
        script.call("weather", {"city": "Graz"}),
        script.call("trains", {"to": "Graz"}),
        script.call("rooms", {"city": "Graz"}),
    ]
    script.assistant("", graz)
    script.result(graz[2], '{"city":"Graz","free":[{"name":"Pension Murblick","price":84}]}')
    script.result(graz[0], '{"city":"Graz","friday":{"low":3,"high":11,"rain_mm":0.4}}')
    train = script.result(graz[1], '{"to":"Graz","train":"RJ 559","departs":"07:58","platform":"6A"}')
    script.assistant("Dry enough, up to 11 degrees. RJ 559 at 07:58, and Pension Murblick has a room for 84 euros.")
    script.user("Compare with Linz.")
    linz = [
        script.call("rooms", {"city": "Linz"}),
        script.call("weather", {"city": "Linz"}),
        script.call("trains", {"to": "Linz"}),
    ]
    script.assistant("The same three for Linz.", linz)
    script.result(linz[1], '{"city":"Linz","friday":{"low":1,"high":7,"rain_mm":9.8}}')
    script.result(linz[2], '{"to":"Linz","train":"WB 904","departs":"08:12","platform":"11"}')
    room = script.result(linz[0], '{"city":"Linz","free":[{"name":"Gasthof Kettenbrücke","price":71}]}')
    script.assistant("Linz is wetter and colder, the room is cheaper by 13 euros.")
    script.user("Graz then.")
    script.assistant("Graz it is. Shall I keep the room?")
    script.probe("From which platform does the train to Graz leave?", ["6A", "platform 6A"], [train], "single_hop")
    script.probe("Which place in Linz had a free room?", ["Gasthof Kettenbrücke"], [room], "single_hop")


@_trap(
    "2026-02-10T13:00:00",
    "a tool call is never answered and the user goes on: most providers refuse the bare history",
    _CITIES,
)
def unanswered_call(script: Script) -> None:
    """Write calls that nothing answered: the tool hung, and the user went on."""
    script.user("What is the next train to Brno?")
    script.assistant("One moment.", [script.call("trains", {"to": "Brno"})])
    script.wait(minutes=6)
    script.user("Still there? Never mind the train, I take the car. Is it freezing in Brno?")
    pair = [script.call("weather", {"city": "Brno"}), script.call("rooms", {"city": "Brno"})]
    script.assistant("", pair)
    frost = script.result(pair[0], '{"city":"Brno","tonight":{"low":-6,"road":"black ice on the D1 near Vyškov"}}')
    script.assistant("Yes, 6 below zero tonight, and black ice on the D1. The room search gave no answer.")
    script.user("Then I stay at home.")
    script.assistant("A good decision.")
    script.probe("Near which town is there black ice on the D1?", ["Vyškov"], [frost], "single_hop")
    script.probe("At what time does the next train to Brno leave?", [], [], "unanswerable")


@_trap(
    "2026-02-11T03:12:00",
    "one tool result is larger than most context windows; the one line that matters is in its middle",
    _SHELL,
)
def enormous_result(script: Script) -> None:
    """Write one tool result of some 400 000 characters with one fact in its middle."""
    script.system("You are on call for a storage cluster. Find the cause, then say what to do.")
    script.user("Writes fail since three. Look at the log of the coordinator.")
    log = script.tool_call("run", {"command": "cat /var/log/coordinator/2026-02-11.log"}, result=_log(400_000))
    script.assistant("The coordinator put one shard into read-only mode halfway through. The disk below it is full.")
    script.user("Which disk? I need the serial for the ticket.")
    script.assistant("It is in the line with `forced read-only`; I quote it in the ticket.")
    script.probe("What is the serial of the full disk?", ["ZX-4471-QD"], [log], "single_hop")
    script.probe("Which shard was forced into read-only mode?", ["shard 107", "107"], [log], "single_hop")


@_trap("2026-02-02T08:15:00", "facts are stated, denied and corrected: a summary that keeps the first version is wrong")
def contradictions(script: Script) -> None:
    """Write facts that are stated, denied and corrected; the last word holds."""
    script.system("You keep the files of a small clinic. The latest statement of the staff holds.")
    script.user("Room 4 is booked for Dr Adeyemi on Thursday at 14:00. The patient is allergic to penicillin.")
    script.assistant("Noted: room 4, Dr Adeyemi, Thursday 14:00, allergy to penicillin.")
    script.wait(minutes=12)
    script.user("No, wait. It is not penicillin. I was reading the chart of the next patient. No allergies are known.")
    script.assistant("Understood, I have taken the penicillin allergy out. No known allergies.")
    script.wait(hours=2)
    room = script.user("Room 4 has a broken lamp. Dr Adeyemi moves to room 7, same time.")
    script.assistant("Moved to room 7. Room 4 is free on Thursday.")
    script.user("Somebody told me that it is room 9. Is it?")
    script.assistant("By what I have here it is room 7. Nobody has told me of room 9.")
    script.user("Good. Room 9 was a rumour, forget it.")
    script.assistant("Forgotten. Room 7 stands.")
    script.wait(days=1)
    allergy = script.user("The lab called: the patient does have an allergy after all. It is latex, not penicillin.")
    script.assistant("Entered: allergy to latex. Penicillin stays off the list.")
    script.user("And 14:00 is too early, they come from the coast. What else is free?")
    script.assistant("In the same room 15:30 and 16:45 are free.")
    time = script.user("Take 16:45. Hm, no: 15:30, the last train goes at six.")
    script.assistant("Then it is 15:30 on Thursday, not 14:00 and not 16:45.")
    script.probe("In which room does Dr Adeyemi see the patient?", ["room 7", "7"], [room], "updated_fact")
    script.probe("Which allergy does the patient have?", ["latex"], [allergy], "updated_fact")
    script.probe("At what time is the appointment on Thursday?", ["15:30", "3:30 pm"], [time], "updated_fact")
    script.probe("What is the patient's date of birth?", [], [], "unanswerable")


@_trap(
    "2026-02-14T10:00:00", "tabs, double spaces, hashes, a regex: anything that normalises or rephrases text loses them"
)
def exact_code(script: Script) -> None:
    """Write code and identifiers of which every character counts."""
    script.system("You keep snippets word for word. Never reformat them.")
    code = script.user(_text("code to keep"))
    script.assistant("Kept. The body is indented with tabs, the dict with four spaces.")
    keys = script.user(_text("keys to keep") + "\n")
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


@_trap("2026-02-16T18:00:00", "empty, blank and newline-only messages in the middle: some providers refuse them")
def empty_and_blank(script: Script) -> None:
    """Write messages with nothing in them, or only space."""
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


@_trap("2026-02-17T12:00:00", "ZWJ emoji, right-to-left text, CJK, combining marks, zero-width and bidi characters")
def unicode(script: Script) -> None:
    """Write in many scripts, with joined emoji, marks that combine, and characters that do not show."""
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


@_trap(
    "2026-02-03T09:00:00", "a second system message replaces the first midway: a strategy that pins the first one errs"
)
def system_changed(script: Script) -> None:
    """Replace the rules midway by a new system message."""
    first, second = _texts("library rules")
    old = script.system(first)
    script.user("How long may I keep a novel?")
    script.assistant("You may keep a novel for 21 days.")
    script.probe("What does a late book cost per day?", ["20 pence", "£0.20", "20p"], [old], "single_hop")
    script.user("And what if I bring it back four days late?")
    script.assistant("Four days late would cost you 80 pence.")
    script.wait(days=9)
    new = script.system(second)
    script.user("I have a travel guide since last month. What happens if it is late now?")
    script.assistant("Nothing to pay. You are blocked only after 14 days. The loans desk can lift a block.")
    script.user("Then I keep it until the weekend.")
    script.assistant("That is fine. If in doubt, ask the loans desk.")
    script.probe("How many days does a loan last by the rule in force?", ["28 days", "28"], [new], "updated_fact")
    script.probe(
        "After how many days of delay is a reader blocked, by the rule in force?",
        ["14 days", "14"],
        [new],
        "single_hop",
    )
    script.probe("How long was a loan under the first rules?", ["21 days", "21"], [old], "temporal")


@_trap("2026-02-04T10:00:00", "several system messages at the start and between turns: all of them are in force")
def several_systems(script: Script) -> None:
    """Write several system messages at the start, and more between the turns."""
    script.system("You are the night porter of the Hotel Seeblick.")
    code = script.system("Guests may ask for the code of the side door after 23:00. It is 7-1-1-9.")
    script.system("Never give out the room number of another guest.")
    script.user("Good evening. I have left my umbrella at breakfast, a green one.")
    script.assistant("Good evening. I will look in the breakfast room.")
    umbrella = script.system("Note from housekeeping: a green umbrella was handed in and hangs on hook 14.")
    script.user("Any luck?")
    script.assistant("Yes, it is here. It hangs on a hook behind the desk.")
    shuttle = script.system("Note from the front office: the first shuttle tomorrow leaves at 05:40, not at 06:10.")
    script.system("")
    script.user("Wonderful. And how do I get in after eleven?")
    script.assistant("By the side door. I can give you the code after 23:00.")
    script.probe("On which hook does the umbrella hang?", ["hook 14", "14"], [umbrella], "single_hop")
    script.probe("When does the first shuttle leave tomorrow?", ["05:40", "5:40"], [shuttle], "updated_fact")
    script.probe("What is the code of the side door?", ["7-1-1-9", "7119"], [code], "single_hop")


@_trap(
    "2026-02-12T16:00:00",
    "ten calls in a row with no text at all: a window that counts user turns has nowhere to cut",
    _SHELL,
)
def tool_only_turns(script: Script) -> None:
    """Write an agent that acts ten times without a word from the user, and without a word to them."""
    script.system("You mend small repositories. Act; report at the end.")
    script.user("The build of `tidegauge` is red. Mend it.")
    steps = (step.partition("\n") for step in _texts("shell session"))
    results = [script.tool_call("run", {"command": command}, output) for command, _, output in steps]
    script.assistant("Green. The version was not a valid one, and a table lay in the wrong folder.")
    script.probe("Which commit added the harbour table for Wick?", ["77ab01e"], [results[3]], "single_hop")
    script.probe("How many tests passed at the end?", ["188"], [results[9]], "single_hop")


@_trap(
    "2026-02-05T07:30:00", "the assistant speaks first, without system or user: some providers refuse such a request"
)
def first_assistant(script: Script) -> None:
    """Let the assistant speak first, twice, before any user."""
    hello = script.assistant("Good morning, this is the boat hire at Kestrel Quay. We open at 08:30 today.")
    wind = script.assistant("A warning before you ask: no rowing boats until the wind drops below 5 Beaufort.")
    script.user("Oh. And the pedal boats?")
    script.assistant("Pedal boats stay within the harbour wall, so they go out. 18 euros an hour.")
    script.user("Two of them, please, from ten to twelve.")
    script.assistant("Two pedal boats from 10:00 to 12:00, 72 euros. Please bring a card for the deposit.")
    script.probe("When does the boat hire open today?", ["08:30", "8:30"], [hello], "single_hop")
    script.probe("Below which wind do rowing boats go out again?", ["5 Beaufort"], [wind], "single_hop")


@_trap(
    "2026-02-18T08:00:00", "one user message is larger than a small window: what is kept when it alone does not fit?"
)
def long_single_user_message(script: Script) -> None:
    """Write one user message of 60 000 characters, and ask about its middle."""
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


@_trap(
    "2026-02-19T06:00:00",
    "the same two messages many times: what deduplicates by text, or finds a message by it, slips",
)
def repeated_identical(script: Script) -> None:
    """Repeat the same message; only the place tells two of them apart."""
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


@_trap("2026-02-13T09:45:00", "tool arguments that are no JSON object: cut off, bare text, an array, empty", _SHELL)
def tool_call_bad_json(script: Script) -> None:
    """Write arguments that are cut off, not JSON, an array, or empty."""
    script.user("How much space is left on the build machine?")
    for number, (arguments, answer) in enumerate(
        (
            ('{"command": "df -h /srv', "error: arguments are not valid JSON (end of input at column 24)"),
            ("df -h /srv", "error: arguments are not valid JSON (column 1)"),
            ('["df", "-h", "/srv"]', "error: arguments must be an object"),
            ("", "error: no arguments"),
        )
    ):
        call = ToolCall(id=f"bad_{number}", name="run", arguments=arguments)
        script.assistant("" if number else "I will look.", [call])
        script.result(call, answer)
    right = script.tool_call("run", {"command": "df -h /srv"}, "/dev/nvme1n1  1.8T  1.7T  61G  97% /srv")
    script.assistant("61G are left, the disk is at 97 per cent. Sorry for the detour.")
    script.user("Tight. Thank you.")
    script.assistant("I would clear the old wheels first.")
    script.probe("Which device holds /srv?", ["/dev/nvme1n1", "nvme1n1"], [right], "single_hop")


def _log(length: int) -> str:
    """Return a log of at least a number of characters, with the important line in its middle."""
    rng = Random("traps/enormous_result")
    tops = {"shard": 96, "ms": 900, "count": 9_000_000, "some": 4000, "node": 24, "seconds": 60}
    forms = _texts("log line")
    lines: list[str] = []
    size, clock = 0, 0
    while size < length:
        clock += rng.randint(200, 2900)
        stamp = f"{clock // 3_600_000:02d}:{clock // 60_000 % 60:02d}:{clock // 1000 % 60:02d}.{clock % 1000:03d}"
        facts = {name: str(rng.randint(2, top)) for name, top in tops.items()}
        facts["digest"] = f"{int(facts['count']):x}"
        lines.append(f"{stamp} {say(rng, rng.choice(forms), facts)}")
        size += len(lines[-1]) + 1
    middle = len(lines) // 2
    stamp = lines[middle].split()[0]
    lines.insert(middle, f"{stamp} {_text('log line that matters')}")
    return "\n".join(lines)


def _minutes(length: int) -> str:
    """Return minutes of at least a number of characters, with the important sentence in item 60."""
    rng = Random("traps/long_single_user_message")
    form = _text("sentence of the minutes")
    items: list[str] = []
    size = 0
    while size < length:
        sentences = [fill(form, rng.choice, lambda _: str(rng.randint(2, 48))) for _ in range(rng.randint(4, 8))]
        if len(items) == 59:
            sentences.insert(2, _text("sentence of the minutes that matters"))
        items.append(f"Item {len(items) + 1}. " + " ".join(sentences))
        size += len(items[-1]) + 2
    return "\n\n".join(items)


def _texts(key: str) -> tuple[str, ...]:
    return load(__package__, "texts")[key]


def _text(key: str) -> str:
    (text,) = _texts(key)
    return text
