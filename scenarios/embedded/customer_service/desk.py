"""The desk of a support conversation: the one place where customer and agent speak and tools answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from random import Random

import msgspec

from ...model import Tool
from ..forms import say
from ..hours import OfficeHours
from ..quiz import Quiz
from ..script import Script
from .world import Language, World

_PARAMETERS: Mapping[str, tuple[str, ...]] = {
    "verify_identity": ("customer", "code_word"),
    "get_customer": ("customer",),
    "list_orders": ("branch",),
    "get_order": ("order",),
    "search_policy": ("query",),
    "update_address": ("branch", "address"),
    "reschedule_delivery": ("order", "date"),
    "create_return": ("order", "sku", "quantity", "refund_method"),
    "update_return": ("return", "refund_method"),
    "issue_refund": ("order", "amount", "reason"),
    "update_invoice": ("order", "purchase_order"),
    "check_warranty": ("serial",),
    "create_repair": ("serial", "branch"),
    "cancel_item": ("order", "sku"),
}
_COMPUTED = ("sum", "lead", "late")
"""Probes whose answer is worked out: two refunds together, days between two dates."""


class Desk:
    """One conversation being written between the buyer of a customer and the agent of the shop."""

    def __init__(self, language: Language, rng: Random, name: str, turns: int) -> None:
        start = datetime(2025, 2, 3, 8, 10) + timedelta(days=rng.randrange(300), minutes=rng.randrange(150))
        self.language, self.rng, self.world = language, rng, World(language, rng, start)
        tools = [_tool(tool, text) for tool, text in language.tools.items()]
        self.script = Script(name, language=language.code, start=start.isoformat(), tools=tools)
        self.quiz, self.hours = Quiz(self.script, rng, turns), OfficeHours(self.script, rng)
        self._decks: dict[str, list[str]] = {}
        self._numbers_of_rules: dict[tuple[str, str], str] = {}
        world = self.world
        self._facts = {**world.rules, "bank": world.bank, "mail": language.terms["mail"]}
        names = {"shop": world.shop, "company": world.company, "customer": world.customer, "buyer": world.buyer}
        (system,) = language.forms["system"]
        self.script.system(say(rng, system, names | world.rules))

    def customer(self, key: str, **facts: str) -> str:
        """Let the customer speak; return the id of the message."""
        return self.script.user(self.sentence(key, **facts))

    def agent(self, key: str, addition: str = "", **facts: str) -> str:
        """Let the agent speak, with perhaps one more sentence; return the id of the message."""
        return self.script.assistant(self.sentence(key, **facts) + addition)

    def tool(
        self, name: str, arguments: Mapping[str, object], result: Mapping[str, object], *, announced: bool = False
    ) -> str:
        """Let the agent call a tool, perhaps with a word before; return the id of the result's message."""
        stamped = {"as_of": f"{self.script.now:%Y-%m-%dT%H:%M:%SZ}", **result}
        text = msgspec.json.format(msgspec.json.encode(stamped), indent=2).decode()
        return self.script.tool_call(name, arguments, text, self.sentence("look") if announced else "")

    def probe(self, category: str, key: str, answers: Sequence[str], evidence: Sequence[str], **facts: str) -> bool:
        """Offer a question with its gold to the quiz; return whether it wanted one of this category."""
        wanted = self.quiz.wants(category)
        if wanted:
            question = self.clause(f"probe {key}", **facts)
            self.quiz.ask(category, question, answers, evidence, computed=key in _COMPUTED)
        return wanted

    def sentence(self, key: str, **facts: str) -> str:
        """Return a clause with a capital at its start."""
        text = self.clause(key, **facts)
        return text[:1].upper() + text[1:]

    def clause(self, key: str, **facts: str) -> str:
        """Return a filled form of a key: every form is used once before any is used twice."""
        deck = self._decks.get(key)
        if not deck:
            forms = self.language.forms[key]
            deck = self._decks[key] = self.rng.sample(forms, len(forms))
        return self.fill(deck.pop(), facts)

    def fill(self, form: str, facts: Mapping[str, str]) -> str:
        """Return a form filled with facts of the case and of the shop, and with numbers drawn by chance."""
        return say(self.rng, form, {**self._chance(), **self._facts, **facts})

    def rule(self, form: str) -> str:
        """Return a rule of the shop, which has the same numbers whenever it is quoted."""
        numbers = {
            name: self._numbers_of_rules.setdefault((form, name), number) for name, number in self._chance().items()
        }
        return say(self.rng, form, numbers | self._facts)

    def _chance(self) -> dict[str, str]:
        # All are drawn, whichever a form has a slot for: so an edit of a form changes nothing that comes after it.
        rng = self.rng
        return {
            "n": str(rng.randint(2, 12)),
            "n2": str(rng.randint(2, 9)),
            "shelf": f"{rng.choice('ABCDEF')}{rng.randint(10, 99)}",
            "weight": f"{rng.randint(4, 190) / 10}",
            "depot": rng.choice(self.language.words["cities"]),
            "days": str(rng.choice((14, 30, 45))),
        }


def _tool(name: str, text: str) -> Tool:
    fields = {field: {"type": "integer" if field == "quantity" else "string"} for field in _PARAMETERS[name]}
    schema = {"type": "object", "properties": fields, "required": list(fields)}
    return Tool(name, text, msgspec.json.encode(schema).decode())
