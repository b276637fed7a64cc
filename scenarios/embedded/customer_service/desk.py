"""The service desk of customer_service: who speaks, and what the tools answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from random import Random

import msgspec

from ...model import Tool
from ..hours import OfficeHours
from ..quiz import Quiz
from ..script import Script
from .world import Branch, Language, Order, Product, World

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
    """One long conversation between the buyer of a customer and the agent of the shop."""

    def __init__(self, language: Language, rng: Random, name: str, turns: int) -> None:
        start = datetime(2025, 2, 3, 8, 10) + timedelta(days=rng.randrange(300), minutes=rng.randrange(150))
        self.language, self.rng, self.world = language, rng, World(language, rng, start)
        tools = [_tool(tool, text) for tool, text in language.tools.items()]
        self.script = Script(name, language=language.code, start=start.isoformat(), tools=tools)
        self.quiz, self.hours = Quiz(self.script, rng, turns), OfficeHours(self.script, rng)
        self.verified = False
        self.shown_customer = ""
        self._decks: dict[str, list[str]] = {}
        self._drawn: dict[tuple[str, str], str] = {}
        world = self.world
        named = {"shop": world.shop, "company": world.company, "customer": world.customer, "buyer": world.buyer}
        self.script.system(language.system.format(**named, **world.rules))

    # Speaking.

    def say(self, group: str, **given: str) -> str:
        """A sentence for this place: every form once before any comes twice."""
        text = self.clause(group, **given)
        return text[:1].upper() + text[1:]

    def clause(self, group: str, **given: str) -> str:
        """The same as part of a sentence, without the capital."""
        return self._fill(self._deal(group, self.language.frames[group]), given)

    def ask(self, group: str, **given: str) -> Iterator[None]:
        """The customer says this. Whoever was not checked today is checked first, which takes a turn."""
        self.told = self.script.user(self.say(group, **given))
        if self.verified:
            return
        self.script.assistant(self.say("ask_identity"))
        yield
        self.verified = True
        word, customer = self.world.code_word, self.world.customer
        self.script.user(self.say("give_identity", word=word, customer=customer))
        until = f"{self.script.now:%Y-%m-%d}T23:59:59Z"
        checked = {"verified": True, "customer": customer, "valid_until": until, "attempts": 1, "agent": "A-17"}
        checked |= {"name": self.world.company, "buyer": self.world.buyer, "rights": ["read", "change", "refund"]}
        checked |= {
            "session": self.world.number("session", "S{}"),
            "channel": "chat",
            "device": "known",
            "level": "full",
            "note": "",
        }
        self.tool("verify_identity", {"customer": customer, "code_word": word}, checked)
        self.shown_customer = self.tool("get_customer", {"customer": customer}, self._account())

    def reply(self, group: str, after: str = "", **given: str) -> str:
        """The agent answers, with perhaps a sentence `after` it."""
        return self.script.assistant(self.say(group, **given) + after)

    def tool(self, name: str, arguments: Mapping[str, object], result: Mapping[str, object], quiet: bool = True) -> str:
        """The agent calls a tool; returns the id of the result's message."""
        stamped = {"as_of": f"{self.script.now:%Y-%m-%dT%H:%M:%SZ}", **result}
        text = msgspec.json.format(msgspec.json.encode(stamped), indent=2).decode()
        return self.script.tool_call(name, arguments, text, "" if quiet else self.say("look"))

    def probe(self, category: str, group: str, answers: Sequence[str], evidence: Sequence[str], **given: str) -> None:
        """Offer a question with its gold to the quiz."""
        question = self._fill(self._deal(f"probe {group}", self.language.probes[group]), given)
        self.quiz.ask(category, question, answers, evidence, computed=group in _COMPUTED)

    # What tools answer.

    def get_order(self, order: Order) -> str:
        """Open an order; returns the id of the result's message."""
        money = _amount
        lines = [
            {
                "sku": product.sku,
                "product": product.name,
                "quantity": count,
                "unit_price": money(product.price),
                "line_total": money(product.price * count),
            }
            for product, count in order.lines
        ]
        order.note = order.note or self.say("order_note", contact=order.branch.contact)
        order.events = order.events or self._history(order)
        result: dict[str, object] = {
            "order": order.id,
            "branch": order.branch.name,
            "contact": order.branch.contact,
            "status": self.language.statuses[order.status],
            "placed": order.placed.isoformat(),
            "promised": order.promised.isoformat(),
            "delivered": order.delivered.isoformat() if order.delivered else None,
            "carrier": order.carrier,
            "tracking": order.tracking,
            "deliver_to": order.branch.address,
            "lines": lines,
            "parcels": self._parcels(order),
            "total": money(order.total),
            "currency": self.language.currency,
            "refunds": order.refunds,
            "note": order.note,
            "history": order.events,
        }
        return self.tool("get_order", {"order": order.id}, result, quiet=False)

    def list_orders(self, branch: Branch) -> str:
        """The last orders of a branch."""
        orders = [
            {
                "order": order.id,
                "placed": order.placed.isoformat(),
                "status": self.language.statuses[order.status],
                "total": _amount(order.total),
                "items": [f"{count} × {product.name}" for product, count in order.lines],
            }
            for order in self.world.settle(branch, self.script.now.date())
        ]
        return self.tool("list_orders", {"branch": branch.name}, {"branch": branch.name, "orders": orders}, quiet=False)

    def policy(self, subject: str) -> str:
        """Look up the rules on a subject."""
        others = self.rng.sample([name for name in self.language.queries if name != subject], 2)
        articles = [self._article(subject, 5), *(self._article(other, 3) for other in others)]
        query = self.language.queries[subject]
        return self.tool("search_policy", {"query": query}, {"query": query, "articles": articles})

    def _article(self, subject: str, count: int) -> dict[str, str]:
        frames = self.language.frames[f"policy_{subject}"]
        chosen = sorted(self.rng.sample(range(len(frames)), min(count, len(frames))))
        text = self.language.joint.join(self._fill(frames[at], {}, fixed=True) for at in chosen)
        number = list(self.language.queries).index(subject) + 2
        return {"id": f"P-{number}", "title": self.language.queries[subject], "text": text}

    def _account(self) -> dict[str, object]:
        branches = [
            {"branch": one.name, "contact": one.contact, "phone": one.phone, "address": one.address}
            for one in self.world.branches
        ]
        world = self.world
        bank = {"method": self.language.bank, "ending": world.bank}
        return {
            "customer": world.customer,
            "name": world.company,
            "buyer": world.buyer,
            "bank": bank,
            "branches": branches,
        }

    def _parcels(self, order: Order) -> list[dict[str, str]]:
        """How an order was packed; drawn once."""
        if not order.parcels and order.status != "open":
            for at in range(1, self.rng.randint(2, 4)):
                size = " × ".join(str(self.rng.randint(12, 90)) for _ in range(3))
                weight = f"{self.rng.randint(4, 220) / 10}"
                order.parcels.append({"parcel": f"{order.tracking}/{at}", "size_cm": size, "weight_kg": weight})
        return order.parcels

    def _history(self, order: Order) -> list[dict[str, str]]:
        """Some of the events in the life of an order, in the order in which they happen."""
        rng, events = self.rng, self.language.frames["event"][: 4 if order.status == "open" else None]
        last = order.delivered or min(order.promised, self.script.now.date())
        minutes = (last - order.placed).days * 1440 or 600
        chosen = sorted(rng.sample(range(len(events)), rng.randint(3, min(6, len(events)))))
        times = sorted(rng.sample(range(minutes), len(chosen)))
        first = datetime.combine(order.placed, datetime.min.time())
        known = {"carrier": order.carrier, "contact": order.branch.contact}
        return [
            {"at": f"{first + timedelta(minutes=time):%Y-%m-%d %H:%M}", "event": self._fill(events[at], known)}
            for at, time in zip(chosen, times, strict=True)
        ]

    # Sentences.

    def _deal(self, group: str, frames: tuple[str, ...]) -> str:
        deck = self._decks.get(group)
        if not deck:
            deck = self._decks[group] = self.rng.sample(frames, len(frames))
        return deck.pop()

    def _fill(self, frame: str, given: Mapping[str, str], fixed: bool = False) -> str:
        """A form with its gaps filled; what is drawn by chance stays the same for a rule (`fixed`)."""
        rng, world = self.rng, self.world
        chance = {
            "n": str(rng.randint(2, 12)),
            "n2": str(rng.randint(2, 9)),
            "shelf": f"{rng.choice('ABCDEF')}{rng.randint(10, 99)}",
            "weight": f"{rng.randint(4, 190) / 10}",
            "depot": rng.choice(self.language.cities),
            "days": str(rng.choice((14, 30, 45))),
        }
        if fixed:
            chance = {name: self._drawn.setdefault((frame, name), text) for name, text in chance.items()}
        return frame.format_map({**chance, **world.rules, "bank": world.bank, "mail": self.language.mail, **given})


def amounts(world: World, cents: int) -> list[str]:
    """Ways to write an amount, the one for sentences first."""
    text = world.money(cents)
    return [text, text.replace(" ", ""), _amount(cents), *([str(cents // 100)] if cents % 100 == 0 else [])]


def line_of(order: Order, rng: Random) -> tuple[Product, int]:
    """One of the lines of an order."""
    return rng.choice(order.lines)


def _amount(cents: int) -> str:
    return f"{cents / 100:.2f}"


def _tool(name: str, text: str) -> Tool:
    fields = {field: {"type": "integer" if field == "quantity" else "string"} for field in _PARAMETERS[name]}
    schema = {"type": "object", "properties": fields, "required": list(fields)}
    return Tool(name, text, msgspec.json.encode(schema).decode())
