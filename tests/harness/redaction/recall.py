"""How much of what is planted in conversations is found: `python -m tests.harness.redaction.recall`.

Values are made by a seed, of forms that people and programs write, among them such as no rule can know. Each is planted
in a sentence, in JSON, in code and in the output of a shell; found is one of which nothing is left in the conversation.
With the path of recordings, it also prints what is found in them, for somebody to look at.
"""

from __future__ import annotations

import json
import random
import string
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path

from ctxbench.harness.redaction.find import texts_of
from ctxbench.harness.redaction.redact import Redaction, Redactor
from ctxbench.scenarios.model import Conversation, Message, ToolCall

LETTERS = string.ascii_letters + string.digits
FIRST, LAST, SURNAMES, GIVEN = (
    text.split()
    for text in (
        "Aisha Bruno Chloé Dmitri Elena Farid Greta Hiro Ingrid Jamal Keiko Leila Mateo Nadia Olga Priya Quentin Rosa",
        "Abadi Brandt Castillo Dubois Eriksson Fujita Gupta Haddad Ivanova Jansen Kowalski Lindqvist Moreau Nakamura",
        "李 王 张 刘 陈 杨 赵 黄",
        "伟明 芳 秀英 敏静 丽娟 强 磊 洋洋",
    )
)
DOMAINS = ["firma.de", "mail.example.org", "uni-ulm.de", "corp.co.uk", "startup.io", "qq.com"]


class Planted:
    """A value to plant: its kind as the table names it, the value, and what stands around it by nature."""

    def __init__(self, kind: str, value: str, around: str = "{}") -> None:
        self.kind, self.value, self.around = kind, value, around


def some(chance: random.Random, number: int, letters: str = LETTERS) -> str:
    return "".join(chance.choice(letters) for _ in range(number - 2)) + "a1"


def secrets(chance: random.Random) -> Iterator[Planted]:
    keys = [
        "sk-proj-{}",
        "sk-ant-api03-{}",
        "ghp_{}",
        "hf_{}",
        "glpat-{}",
        "xoxb-1234567890-{}",
        "AIza{}",
        "gsk_{}",
        "npm_{}",
    ]
    for start in keys:
        yield Planted("secret: key of a known service", start.format(some(chance, 36)))
    yield Planted("secret: key of a known service", "AKIA" + some(chance, 16, string.ascii_uppercase)[:14] + "A1")
    yield Planted("secret: key of a known service", f"eyJ{some(chance, 30)}.eyJ{some(chance, 40)}.{some(chance, 43)}")
    for around in ("DB_PASSWORD={}", 'api_key = "{}"', '{{"client_secret": "{}"}}', "Authorization: Bearer {}"):
        yield Planted("secret: behind a name of one", some(chance, 24), around)
    yield Planted("secret: behind a name of one", some(chance, 12), "postgres://admin:{}@db.local/app")
    yield Planted("secret: behind a name of one", some(chance, 32), "curl 'https://api.host/v1?access_token={}'")
    yield Planted("secret: in a sentence, or alone", some(chance, 14), "my password is {} by the way")
    yield Planted("secret: in a sentence, or alone", some(chance, 40), "{}")


def emails(chance: random.Random) -> Iterator[Planted]:
    for domain in DOMAINS:
        person = f"{chance.choice(FIRST)}.{chance.choice(LAST)}{chance.randrange(99)}".lower().replace("é", "e")
        yield Planted(
            "e-mail address", f"{person}@{domain}", chance.choice(["{}", "<{}>", "mailto:{}", "({})", "to {},"])
        )
    yield Planted("e-mail address: disguised", f"{some(chance, 6)} (at) firma (dot) de", "write to {}")


def phones(chance: random.Random) -> Iterator[Planted]:
    rest = f"{chance.randrange(200, 999)}", f"{chance.randrange(1000, 9999)}"
    yield Planted("phone number: with a country code", f"+1 415 {rest[0]} {rest[1]}")
    yield Planted("phone number: with a country code", f"+49 30 {chance.randrange(1000000, 9999999)}")
    yield Planted("phone number: with a country code", f"+44 20 7946 {rest[1]}")
    yield Planted("phone number: with a country code", f"+86 138 {rest[1]} {chance.randrange(1000, 9999)}")
    yield Planted("phone number: US and CN, in groups", f"(415) {rest[0]}-{rest[1]}")
    yield Planted("phone number: US and CN, in groups", f"212-{rest[0]}-{rest[1]}")
    yield Planted("phone number: US and CN, in groups", f"139 {rest[1]} {chance.randrange(1000, 9999)}")
    yield Planted("phone number: digits behind a word for it", f"650{rest[0]}{rest[1]}", "call me at {}")
    yield Planted("phone number: digits behind a word for it", f"139{chance.randrange(10**7, 10**8)}", "我的手机是{}")
    yield Planted("phone number: digits alone", f"415{rest[0]}{rest[1]}", "{}")
    yield Planted("phone number: of another region", f"030 {chance.randrange(1000000, 9999999)}", "Tel. {}")


def homes(chance: random.Random) -> Iterator[Planted]:
    for path in ("/home/{}/code/app.py", "/Users/{}/Documents", "C:\\Users\\{}\\src", "/mnt/c/Users/{}/x"):
        user = f"{chance.choice(FIRST)}{chance.choice(LAST)}".lower().replace("é", "e")
        yield Planted("home folder", user, path)
        yield Planted("name: a user's, alone", user, "-rw-r--r-- 1 {} staff 120 app.py")


def names(chance: random.Random) -> Iterator[Planted]:
    def person() -> str:
        return f"{chance.choice(FIRST)} {chance.choice(LAST)}"

    for around in ("Author: {} <x1@firma.de>", "Co-authored-by: {} <x2@firma.de>", 'From: "{}" <x3@firma.de>'):
        name = person()
        yield Planted("name: of commits and e-mails", name, around)
        yield Planted("name: of commits and e-mails", name, "as {} said")
    yield Planted("name: in a sentence alone", person(), "as my colleague {} said")
    yield Planted("name: in a sentence alone", chance.choice(SURNAMES) + chance.choice(GIVEN), "我的同事{}说")


PLACES: list[Callable[[str], str]] = [
    lambda text: f"Please look at this: {text}",
    lambda text: f"first line\n{text}\nlast line",
    lambda text: f"# {text}\ndef f(a1, b2):\n    return a1[0] * 1234567890\n",
    lambda text: json.dumps({"stdout": f"ok\n{text}\n", "code": 0}),
    lambda text: json.dumps({"出": f"好的\t{text}"}),
    lambda text: f"这是{text}。",
]


def conversation(number: int, chance: random.Random) -> tuple[Conversation, list[Planted]]:
    """A conversation with values of every kind in texts, arguments of calls and results of tools."""
    planted = [one for make in (secrets, emails, phones, homes, names) for one in make(chance)]
    messages = [Message("s", "system", "You are a coding agent.")]
    for at, one in enumerate(planted):
        text = chance.choice(PLACES)(one.around.format(one.value))
        arguments = json.dumps({"command": f"echo\n{one.around.format(one.value)}"}, ensure_ascii=at % 2 == 0)
        messages += [
            Message(f"u{at}", "user", text),
            Message(f"a{at}", "assistant", "", calls=(ToolCall(f"c{at}", "bash", arguments),)),
            Message(f"t{at}", "tool", chance.choice(PLACES)(one.around.format(one.value)), answers=f"c{at}"),
        ]
    return Conversation(f"planted {number}", tuple(messages)), planted


def measured(conversations: int, seed: int) -> dict[str, tuple[int, int]]:
    """By kind, how many values were planted, and of how many nothing is left."""
    rows: dict[str, list[bool]] = defaultdict(list)
    for number in range(conversations):
        made, planted = conversation(number, random.Random(seed * 1_000_003 + number))
        [redacted] = Redactor(Redaction(), [made]).conversations([made])
        left = "\n".join(texts_of(redacted))
        for one in planted:
            forms = {one.value, json.dumps(one.value)[1:-1]}
            rows[one.kind].append(not any(form in left for form in forms))
    return {kind: (len(found), sum(found)) for kind, found in sorted(rows.items())}


def main() -> None:
    """Print the table of docs/sharing.md; with paths, what is found in those recordings."""
    print("| kind | planted | found |\n|---|---:|---:|")
    for kind, (planted, found) in measured(100, 0).items():
        print(f"| {kind} | {planted:,} | {100 * found / planted:.1f} % |")
    if sys.argv[1:]:
        from ctxbench.scenarios.read import find, read
        from ctxbench.scenarios.source import Problems

        problems = Problems()
        conversations = list(read(find(map(Path, sys.argv[1:]), problems), problems))
        size = sum(len(text) for one in conversations for text in texts_of(one))
        start = time.perf_counter()
        redactor = Redactor(Redaction(), conversations)
        for _ in redactor.conversations(conversations):
            pass
        print(f"\n{len(conversations):,} conversations, {size / 1e6:.1f} million characters: {redactor.summary()};")
        print(f"{size / 1e6 / (time.perf_counter() - start):.1f} million characters a second")
        for placeholder, value in redactor.values.items():
            print(placeholder, repr(value))


if __name__ == "__main__":
    main()
