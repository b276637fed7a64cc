"""The invented shop behind a support conversation: its language, its rules, its customer's branches and orders."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from functools import cache
from random import Random

from ..forms import Forms, load, say


@dataclass(frozen=True, slots=True)
class Language:
    """Everything that the desk has in one language, from `data/<code>*.txt`."""

    code: str
    words: Forms
    """Names and goods to draw from."""
    forms: Forms
    """Forms of messages, of the rules of the shop, and of probe questions."""
    terms: Mapping[str, str]
    """Single words and forms: money, address, ways of payment."""
    statuses: Mapping[str, str]
    searches: Mapping[str, str]
    """Search queries of the agent for policies, by subject."""
    tools: Mapping[str, str]
    joint: str
    """Text between two sentences."""


@cache
def read_language(code: str) -> Language:
    """Return the language `en` or `zh`."""
    words = load(__package__, code)

    def table(key: str) -> dict[str, str]:
        return {name: text for name, _, text in (line.partition(": ") for line in words[key])}

    return Language(
        code=code,
        words=words,
        forms={**load(__package__, f"{code}_talk"), **load(__package__, f"{code}_rules")},
        terms=table("terms"),
        statuses=table("statuses"),
        searches=table("policy searches"),
        tools=table("tools"),
        joint="" if code == "zh" else " ",
    )


@dataclass(frozen=True, slots=True)
class Product:
    """Something the shop sells; prices are in cents."""

    name: str
    sku: str
    price: int


@dataclass(slots=True)
class Branch:
    """A branch of the customer."""

    name: str
    contact: str
    phone: str
    address: str
    place: tuple[str, str, str]
    """Street, postcode and city."""

    @property
    def facts(self) -> dict[str, str]:
        """Return the facts that forms about the branch have slots for."""
        return {"branch": self.name, "contact": self.contact}


@dataclass(slots=True)
class Order:
    """An order of a branch. `delivered` is None as long as it is on its way."""

    id: str
    branch: Branch
    lines: list[tuple[Product, int]]
    status: str
    placed: date
    promised: date
    delivered: date | None
    carrier: str
    tracking: str
    note: str = ""
    refunds: list[dict[str, str]] = field(default_factory=list)
    parcels: list[dict[str, str]] = field(default_factory=list)
    events: list[dict[str, str]] = field(default_factory=list)

    @property
    def total(self) -> int:
        """Return the price of all lines in cents."""
        return sum(product.price * count for product, count in self.lines)


class World:
    """Facts of one shop and one customer. Ids are never given twice."""

    def __init__(self, language: Language, rng: Random, today: datetime) -> None:
        self.language, self.rng = language, rng
        words = language.words
        self.shop_code, self.shop = rng.choice(words["shop codes and names"]).split(" ", 1)
        self.company = rng.choice(words["companies"])
        people = rng.sample(words["people"], len(words["people"]))
        self.buyer, self.code_word = people.pop(), rng.choice(words["code words"])
        self.customer = f"B-{rng.randint(20000, 89999)}"
        self.bank = f"{rng.randint(0, 9999):04d}"
        self.products = self._catalogue()
        self.branches = [self._branch(name, people.pop()) for name in rng.sample(words["branches"], 9)]
        self._set_rules()
        self.orders: dict[str, list[Order]] = {branch.name: [] for branch in self.branches}
        self._numbers: dict[str, int] = {}
        for branch in self.branches:
            for ago in (118, 87, 61, 34):
                self.order("delivered", today.date() - timedelta(days=ago), branch)

    def money(self, cents: int) -> str:
        """Return an amount as written in a sentence."""
        return self._fill(self.language.terms["money"], amount=decimal(cents))

    def amounts(self, cents: int) -> list[str]:
        """Return the ways to write an amount, the one for sentences first."""
        text = self.money(cents)
        return [text, text.replace(" ", ""), decimal(cents), *([str(cents // 100)] if cents % 100 == 0 else [])]

    def dates(self, day: date) -> list[str]:
        """Return the ways to write a day, the one for sentences first."""
        words = self.language.words
        facts = {"day": str(day.day), "month": words["months"][day.month - 1], "year": str(day.year)}
        return [*(say(self.rng, form, facts) for form in words["dates"]), day.isoformat()]

    def day_counts(self, count: int) -> list[str]:
        """Return the ways to write a number of days."""
        return [self._fill(self.language.terms["days"], count=str(count)), str(count)]

    def number(self, kind: str, prefix: str = "", suffix: str = "") -> str:
        """Return the next number of a kind; numbers grow by uneven steps."""
        self._numbers[kind] = self._numbers.get(kind, self.rng.randint(104_000, 386_000)) + self.rng.randint(3, 90)
        return f"{prefix}{self._numbers[kind]}{suffix}"

    def order(self, status: str, placed: date, branch: Branch | None = None, late: int = 0) -> Order:
        """Return a new order of some branch; a delivered one came `late` days after the day promised."""
        rng = self.rng
        branch = branch or rng.choice(self.branches)
        products = rng.sample(self.products, rng.randint(2, 4))
        promised = placed + timedelta(days=rng.randint(4, 8))
        order = Order(
            id=self.order_number(placed),
            branch=branch,
            lines=[(product, rng.randint(2, 7)) for product in products],
            status=status,
            placed=placed,
            promised=promised,
            delivered=promised + timedelta(days=late) if status == "delivered" else None,
            carrier=rng.choice(self.language.words["carriers"]),
            tracking=self.number("parcel", f"{rng.choice('JKLMNRST')}{rng.choice('ADEGHQ')}{rng.randint(100, 999)}"),
        )
        orders = self.orders[branch.name]
        orders.append(order)
        del orders[:-7]
        return order

    def delivered_order(self, day: date, late: int = 0) -> Order:
        """Return a new order that was delivered on a day, `late` days after the day promised."""
        order = self.order("delivered", day, late=late)
        assert order.delivered
        shift = order.delivered - day
        order.placed, order.promised, order.delivered = day - shift, order.promised - shift, day
        return order

    def order_number(self, placed: date) -> str:
        """Return a new number of an order placed on a day."""
        return self.number("order", f"{self.shop_code}-{placed:%y}-")

    def needs_approval(self, cents: int) -> bool:
        """Return whether somebody else has to confirm a refund of an amount."""
        return cents > self.fees["approval_limit"]

    def settle(self, branch: Branch, today: date) -> list[Order]:
        """Mark the orders that have arrived by now, and return the orders of a branch, newest first."""
        for order in self.orders[branch.name]:
            if order.delivered is None and order.promised < today:
                order.delivered, order.status = order.promised, "delivered"
        return self.orders[branch.name][::-1]

    def new_address(self, branch: Branch | None = None) -> str:
        """Return an address; for a branch the one that it has, with another house number."""
        street, postcode, city = branch.place if branch else self._place()
        number = str(self.rng.randint(2, 198))
        return self._fill(self.language.terms["address"], street=street, number=number, postcode=postcode, city=city)

    def move(self, branch: Branch) -> str:
        """Give the branch a new address and return it."""
        branch.place = self._place()
        branch.address = self.new_address(branch)
        return branch.address

    def _fill(self, form: str, **facts: str) -> str:
        return say(self.rng, form, facts)

    def _place(self) -> tuple[str, str, str]:
        rng, words = self.rng, self.language.words
        city = rng.randrange(len(words["cities"]))
        return rng.choice(words["streets"]), f"{(city + 3) * 1200 + rng.randint(10, 980):05d}", words["cities"][city]

    def _branch(self, name: str, contact: str) -> Branch:
        phone = f"0{self.rng.randint(201, 899)} {self.rng.randint(100, 999)} {self.rng.randint(1000, 9999)}"
        branch = Branch(name, contact, phone, "", ("", "", ""))
        self.move(branch)
        return branch

    def _catalogue(self) -> list[Product]:
        rng, words = self.rng, self.language.words
        products: dict[str, Product] = {}
        for line in words["products with lowest and highest price"] * 4:
            low, high, form = line.split(" ", 2)
            model = f"{rng.choice('ACEHKMPRTX')}{rng.randint(11, 99)}0"
            maker, inches = rng.choice(words["makers"]), str(rng.choice((24, 27, 32, 34)))
            name = self._fill(form, maker=maker, inches=inches, model=model)
            price = rng.randrange(int(low), int(high), 500) + rng.choice((0, 50, 90))
            sku = f"{rng.randint(1000, 9999)}-{len(products):03d}"
            products.setdefault(name, Product(name, sku, price))
        return list(products.values())

    def _set_rules(self) -> None:
        """Draw the `limits` and `fees` of the shop, and write them into its `rules`."""
        pick, scale = self.rng.choice, int(self.language.terms["fees in euros times"])
        self.limits = {
            "tries": pick((3, 4)),
            "return_days": pick((21, 30, 45, 60)),
            "fee": pick((10, 15, 20)),
            "label_days": pick((10, 14, 18)),
            "bank_days": pick((3, 5, 7)),
            "bonus": pick((4, 5, 8)),
            "damage_days": pick((4, 6, 8)),
            "warranty_months": pick((24, 36)),
            "battery_months": pick((6, 12)),
            "repair_days": pick((8, 12, 16)),
            "move_days": pick((25, 40)),
            "hours": pick((24, 48)),
            "invoice_days": pick((90, 180)),
        }
        self.fees = {
            "delay_credit": scale * pick((250, 400, 600)),
            "delay_cap": scale * pick((3000, 4500)),
            "approval_limit": scale * pick((200_000, 350_000)),
            "label_fee": scale * pick((490, 690)),
            "keep_limit": scale * pick((4000, 6000)),
            "move_fee": scale * pick((350, 590)),
        }
        numbers = {name: str(number) for name, number in self.limits.items()}
        self.rules = numbers | {name: self.money(cents) for name, cents in self.fees.items()}


def decimal(cents: int) -> str:
    """Return an amount in cents with two decimals and no currency."""
    return f"{cents / 100:.2f}"
