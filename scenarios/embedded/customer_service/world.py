"""The invented shop behind a customer_service conversation: its rules, its customer's branches, its orders."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from random import Random


@dataclass(frozen=True, slots=True)
class Language:
    """Everything that is written in one language. Products are (name, lowest price, highest price) in cents."""

    code: str
    system: str
    frames: Mapping[str, tuple[str, ...]]
    shops: tuple[str, ...]
    companies: tuple[str, ...]
    people: tuple[str, ...]
    branches: tuple[str, ...]
    streets: tuple[str, ...]
    cities: tuple[str, ...]
    carriers: tuple[str, ...]
    code_words: tuple[str, ...]
    products: tuple[tuple[str, int, int], ...]
    makers: tuple[str, ...]
    decoys: tuple[str, ...]
    bank: str
    credit: str
    currency: str
    scale: int
    """How many times the fees in euros."""
    joint: str
    """What stands between two sentences."""
    mail: str
    methods: tuple[str, ...]
    """Ways to say that something is paid as store credit."""
    statuses: Mapping[str, str]
    address: str
    money: str
    date: str
    dates: tuple[str, ...]
    months: tuple[str, ...]
    days: str
    tools: Mapping[str, str]
    queries: Mapping[str, str]
    probes: Mapping[str, tuple[str, ...]]


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
        return sum(product.price * count for product, count in self.lines)


class World:
    """What is true of one shop and one customer. Ids are never given twice."""

    def __init__(self, language: Language, rng: Random, today: datetime) -> None:
        self.language, self.rng = language, rng
        self.shop, self.company = rng.choice(language.shops), rng.choice(language.companies)
        people = rng.sample(language.people, len(language.people))
        self.buyer, self.code_word = people.pop(), rng.choice(language.code_words)
        self.customer = f"B-{rng.randint(20000, 89999)}"
        self.bank = f"{rng.randint(0, 9999):04d}"
        self.products = self._catalogue()
        self.branches = [self._branch(name, people.pop()) for name in rng.sample(language.branches, 9)]
        self.rules = self._rules()
        self.orders: dict[str, list[Order]] = {branch.name: [] for branch in self.branches}
        self._numbers: dict[str, int] = {}
        for branch in self.branches:
            for ago in (118, 87, 61, 34):
                self.order("delivered", today.date() - timedelta(days=ago), branch)

    def money(self, cents: int) -> str:
        """An amount as it stands in a sentence."""
        return self.language.money.format(amount=f"{cents / 100:.2f}")

    def dates(self, day: date) -> list[str]:
        """Ways to write a day, the one for sentences first."""
        language = self.language
        forms = (language.date, *language.dates)
        month = language.months[day.month - 1]
        return [*(form.format(day=day.day, month=month, year=day.year) for form in forms), day.isoformat()]

    def number(self, kind: str, form: str = "{}") -> str:
        """The next number of a kind; numbers grow by uneven steps."""
        self._numbers[kind] = self._numbers.get(kind, self.rng.randint(104_000, 386_000)) + self.rng.randint(3, 90)
        return form.format(self._numbers[kind])

    def order(self, status: str, placed: date, branch: Branch | None = None, late: int = 0) -> Order:
        """A new order of some branch; a delivered one came `late` days after the day promised."""
        rng = self.rng
        branch = branch or rng.choice(self.branches)
        products = rng.sample(self.products, rng.randint(2, 4))
        promised = placed + timedelta(days=rng.randint(4, 8))
        order = Order(
            id=self.number("order", f"{self.shop_code}-{placed:%y}-{{}}"),
            branch=branch,
            lines=[(product, rng.randint(2, 7)) for product in products],
            status=status,
            placed=placed,
            promised=promised,
            delivered=promised + timedelta(days=late) if status == "delivered" else None,
            carrier=rng.choice(self.language.carriers),
            tracking=self.number(
                "parcel", f"{rng.choice('JKLMNRST')}{rng.choice('ADEGHQ')}{rng.randint(100, 999)}{{}}"
            ),
        )
        kept = self.orders[branch.name]
        kept.append(order)
        del kept[:-7]
        return order

    def settle(self, branch: Branch, today: date) -> list[Order]:
        """The orders of a branch, those delivered by now marked so; the newest comes first."""
        for order in self.orders[branch.name]:
            if order.delivered is None and order.promised < today:
                order.delivered, order.status = order.promised, "delivered"
        return self.orders[branch.name][::-1]

    @property
    def shop_code(self) -> str:
        """Two letters that begin the shop's order numbers."""
        return ("VM", "DW", "AL", "KT", "PW")[self.language.shops.index(self.shop)]

    def new_address(self, branch: Branch | None = None) -> str:
        """An address; for a branch the one that it has, with another house number."""
        rng, language = self.rng, self.language
        street, postcode, city = branch.place if branch else self._place()
        return language.address.format(street=street, number=rng.randint(2, 198), postcode=postcode, city=city)

    def move(self, branch: Branch) -> str:
        """The branch gets a new address."""
        branch.place = self._place()
        branch.address = self.new_address(branch)
        return branch.address

    def _place(self) -> tuple[str, str, str]:
        rng, language = self.rng, self.language
        city = rng.randrange(len(language.cities))
        return rng.choice(language.streets), f"{(city + 3) * 1200 + rng.randint(10, 980):05d}", language.cities[city]

    def _branch(self, name: str, contact: str) -> Branch:
        phone = f"0{self.rng.randint(201, 899)} {self.rng.randint(100, 999)} {self.rng.randint(1000, 9999)}"
        branch = Branch(name, contact, phone, "", ("", "", ""))
        self.move(branch)
        return branch

    def _catalogue(self) -> list[Product]:
        made: dict[str, Product] = {}
        for form, low, high in self.language.products * 4:
            model = f"{self.rng.choice('ACEHKMPRTX')}{self.rng.randint(11, 99)}0"
            name = form.format(
                maker=self.rng.choice(self.language.makers), n=self.rng.choice((24, 27, 32, 34)), x=model
            )
            price = self.rng.randrange(low, high, 500) + self.rng.choice((0, 50, 90))
            made.setdefault(name, Product(name, f"{self.rng.randint(1000, 9999)}-{len(made):03d}", price))
        return list(made.values())

    def _rules(self) -> dict[str, str]:
        pick, money = self.rng.choice, self.money
        numbers = {
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
        scale = self.language.scale
        self.delay_credit, self.delay_cap = scale * pick((250, 400, 600)), scale * pick((3000, 4500))
        self.approval_limit = scale * pick((200_000, 350_000))
        amounts = {
            "label_fee": scale * pick((490, 690)),
            "keep_limit": scale * pick((4000, 6000)),
            "move_fee": scale * pick((350, 590)),
            "delay_credit": self.delay_credit,
            "delay_cap": self.delay_cap,
            "approval_limit": self.approval_limit,
        }
        self.days = numbers
        return {name: str(number) for name, number in numbers.items()} | {
            name: money(cents) for name, cents in amounts.items()
        }
