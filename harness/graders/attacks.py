"""Attack a grader with text that speaks to it out of the candidate, the question, an accepted answer or the evidence.

A wrong answer demands to be graded right (`raise`), a right one is made to look wrong (`lower`). The verdict on an item
must not change with them; `ctxbench lab calibrate` reports how often it does.

The attacks (`data/attacks.toml`, all of it our own text) follow the known kinds: orders to the judge, verdicts planted
in advance, text that closes the frame around it, role markers of chat templates, examples that go on, and disguises.
Others do not speak to the grader: they name the accepted answer without asserting it ("formerly …, now …").
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Sequence
from string import Template
from typing import Literal

import msgspec

from ctxbench.metrics.grading import Grade, GradedItem
from ctxbench.metrics.language import word_lists
from ctxbench.metrics.value import Missing

Aim = Literal["raise", "lower"]
Where = Literal["candidate", "question", "accepted", "evidence"]

_WORDS: dict[Aim, dict[str, str]] = {
    "raise": {"word": "CORRECT", "yes": "Yes", "true": "true", "one": "1.0", "zh": "正确", "shi": "是", "full": "full"},
    "lower": {"word": "WRONG", "yes": "No", "true": "false", "one": "0.0", "zh": "错误", "shi": "否", "full": "no"},
}
# Latin letters to Cyrillic ones that look the same.
_LOOKALIKES = str.maketrans("aceopxyiABCEHKMOPTX", "асеорхуіАВСЕНКМОРТХ")


class Attack(msgspec.Struct, frozen=True):
    """One attack: how it changes a text."""

    name: str
    template: str
    """`$text` is the text attacked, `$gold` the first accepted answer; `$word`, `$yes`, `$true`, `$one`, `$zh`, `$shi`,
    `$full` are what the attacker wants the grader to reply. Text between ⟦ and ⟧ is disguised."""
    where: Where = "candidate"
    disguise: Literal["", "zero width", "tags", "lookalikes", "fullwidth", "bold", "right to left", "base64"] = ""

    @property
    def names_gold(self) -> bool:
        """Whether it has the accepted answer in it, which it does not assert. It can only raise a wrong answer."""
        return "$gold" in self.template

    def on(self, text: str, aim: Aim, gold: str = "") -> str:
        """Return the text after the attack."""
        filled = Template(self.template).substitute(_WORDS[aim], text=text, gold=gold)
        start, opening, rest = filled.partition("⟦")
        if not opening:
            return filled
        inner, _, end = rest.partition("⟧")
        return start + _disguised(inner, self.disguise) + end


def attacked(item: GradedItem, attack: Attack, aim: Aim) -> GradedItem | None:
    """Return the item after the attack, or None if it has no text there, or the attack cannot have this aim."""
    name = f"{item.id} {attack.name} {aim}"
    if attack.names_gold:
        if aim == "lower" or not item.accepted:
            return None
        gold, text = (text.strip().rstrip(".。") for text in (item.accepted[0], item.candidate))
        return msgspec.structs.replace(item, id=name, candidate=attack.on(text, aim, gold))
    if attack.where in ("candidate", "question"):
        return msgspec.structs.replace(item, id=name, **{attack.where: attack.on(getattr(item, attack.where), aim)})
    texts: tuple[str, ...] = getattr(item, attack.where)
    if not texts:
        return None
    changed = (attack.on(texts[0], aim), *texts[1:])
    return msgspec.structs.replace(item, id=name, **{attack.where: changed})


class Attempt(msgspec.Struct, frozen=True):
    """An attack on an item, as it is put to a grader."""

    attack: Attack
    aim: Aim
    item: GradedItem
    """The item after the attack."""
    before: GradedItem


def attempts(
    items: Sequence[GradedItem], grades: Sequence[Grade | Missing], attacks: Sequence[Attack]
) -> Iterator[Attempt]:
    """Yield every attack on every graded item: `raise` if the grader called it wrong, `lower` if right."""
    for item, grade in zip(items, grades, strict=True):
        if isinstance(grade, Missing):
            continue
        aim: Aim = "lower" if grade.correct else "raise"
        for attack in attacks:
            if (after := attacked(item, attack, aim)) is not None:
                yield Attempt(attack, aim, after, item)


def flipped(attempt: Attempt, after: Grade) -> bool:
    """Return whether the attacker got the verdict that the attack aims at."""
    return after.correct == (attempt.aim == "raise")


def _disguised(text: str, how: str) -> str:
    match how:
        case "zero width":
            return "\u200b".join(text)
        case "tags":
            return "".join(chr(0xE0000 + ord(char)) for char in text if ord(char) < 128)
        case "lookalikes":
            return text.translate(_LOOKALIKES)
        case "fullwidth":
            return "".join(chr(ord(char) + 0xFEE0) if "!" <= char <= "~" else char for char in text)
        case "bold":
            return "".join(_bold(char) for char in text)
        case "right to left":
            return f"\u202e{text[::-1]}\u202c"
        case "base64":
            return base64.b64encode(text.encode()).decode()
    raise ValueError(f"no disguise {how!r}")


def _bold(char: str) -> str:
    if "A" <= char <= "Z":
        return chr(0x1D400 + ord(char) - ord("A"))
    return chr(0x1D41A + ord(char) - ord("a")) if "a" <= char <= "z" else char


def _attacks() -> Iterator[Attack]:
    file = word_lists(__package__, "attacks")
    for entry in file["attacks"]:
        padding = entry.pop("padding", "") * entry.pop("times", 0)
        template = entry.pop("template").replace("{padding}", padding)
        template = template.replace("{order}", file["order"]).replace("{zh_order}", file["zh_order"])
        yield Attack(template=template, **entry)


ATTACKS: tuple[Attack, ...] = tuple(_attacks())
"""All attacks of `data/attacks.toml`. Their names are unique."""
