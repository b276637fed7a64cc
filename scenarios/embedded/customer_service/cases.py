"""The kinds of cases of customer_service. Each yields when the agent has answered a message of the customer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta

from .aftercare import Aftercare
from .desk import Desk, amounts, line_of
from .world import Order


class Cases(Aftercare):
    """What one customer asks for, case after case."""

    def __init__(self, desk: Desk) -> None:
        super().__init__(desk)
        self._trackings: list[tuple[Order, str]] = []
        self._moved: set[str] = set()

    def turns(self) -> Iterator[None]:
        """One user turn after the other, without end."""
        kinds: Mapping[str, Callable[[], Iterator[None]]] = {
            "status": self._status,
            "return": self.return_case,
            "address": self._address,
            "damaged": self.damaged_case,
            "invoice": self._invoice,
            "warranty": self.warranty_case,
            "delay": self._delay,
            "cancel": self._cancel,
            "total": self._total,
            "recall": self._recall,
        }
        deck = [
            *self.rng.sample(("status", "damaged", "return"), 3),
            *self.rng.sample(("address", "cancel", "total"), 3),
        ]
        while True:
            for kind in deck:
                yield from kinds[kind]()
            deck = self.rng.sample([*kinds, "status", "damaged", "return", "recall"], len(kinds) + 4)

    def _status(self) -> Iterator[None]:
        desk, order = self.desk, self.order("transit", self.rng.randint(2, 4))
        product, _ = line_of(order, self.rng)
        ago = str((self.script.now.date() - order.placed).days)
        known = {
            "product": product.name,
            "branch": order.branch.name,
            "contact": order.branch.contact,
            "order": order.id,
        }
        yield from desk.ask("open_status", ago=ago, **known)
        desk.list_orders(order.branch)
        seen = desk.get_order(order)
        promised = self.world.dates(order.promised)
        facts = {"carrier": order.carrier, "tracking": order.tracking, "promised": promised[0]}
        said = desk.reply("answer_status", **known, **facts)
        self._trackings.append((order, said))
        if desk.quiz.wants("single_hop"):
            desk.probe("single_hop", "tracking", [order.tracking], [seen, said], order=order.id)
        self.phone_probe(order, seen)
        yield
        if self.rng.random() < 0.25 and len(self._trackings) > 1:
            return
        new = max(order.promised, self.script.now.date()) + timedelta(days=self.rng.randint(1, 9))
        yield from desk.ask("ask_move", date=self.world.dates(new)[0], **known)
        told, ref = desk.told, self.world.number("move", "MV-{}")
        moved: dict[str, object] = {
            "order": order.id,
            "reference": ref,
            "was": order.promised.isoformat(),
            "date": new.isoformat(),
        }
        extra: dict[str, object] = {
            "fee": "0.00",
            "carrier": order.carrier,
            "tracking": order.tracking,
            "window": self.window(),
        }
        extra |= {"deliver_to": order.branch.address, "contact": order.branch.contact, "informed": True}
        done = desk.tool("reschedule_delivery", {"order": order.id, "date": new.isoformat()}, moved | extra)
        agreed = desk.reply("answer_move", date=self.world.dates(new)[0], old=promised[0], ref=ref, **known)
        if desk.quiz.wants("updated_fact"):
            desk.probe("updated_fact", "day", self.world.dates(new), [told, done, agreed], order=order.id)
        if desk.quiz.wants("temporal"):
            desk.probe("temporal", "first_day", promised, [seen, said], order=order.id)
        order.promised = new
        yield

    def _address(self) -> Iterator[None]:
        desk, free = self.desk, [one for one in self.world.branches if one.name not in self._moved]
        if not free:
            yield from self._status()
            return
        branch = self.rng.choice(free)
        old, wrong = branch.address, self.world.move(branch)
        known = {"branch": branch.name, "contact": branch.contact}
        yield from desk.ask("open_address", address=wrong, **known)
        self.save_address(branch.name, wrong, old)
        desk.reply("answer_address", address=wrong, **known)
        yield
        right = self.world.new_address(branch)
        while right == wrong:
            right = self.world.new_address(branch)
        branch.address = right
        yield from desk.ask("ask_fix", address=right, **known)
        told = desk.told
        done = self.save_address(branch.name, right, wrong)
        said = desk.reply("answer_fix", address=right, **known)
        if desk.quiz.wants("updated_fact"):
            self._moved.add(branch.name)
            desk.probe("updated_fact", "address", self.address_forms(right), [told, done, said], branch=branch.name)
        yield

    def _invoice(self) -> Iterator[None]:
        desk, order = self.desk, self.order("delivered", self.rng.randint(4, 25))
        po = self.world.number("po", "PO-{}")
        yield from desk.ask("open_invoice", order=order.id, po=po)
        desk.get_order(order)
        invoice = self.save_invoice(order, po)[0]
        desk.reply("answer_invoice", order=order.id, po=po, invoice=invoice)
        yield
        if self.rng.random() < 0.35:
            return
        po = self.world.number("po", "PO-{}")
        yield from desk.ask("ask_po", order=order.id, po=po)
        told = desk.told
        invoice, done = self.save_invoice(order, po)
        said = desk.reply("answer_po", order=order.id, po=po, invoice=invoice)
        if desk.quiz.wants("updated_fact"):
            desk.probe("updated_fact", "po", [po], [told, done, said], order=order.id)
        yield

    def _delay(self) -> Iterator[None]:
        desk, late = self.desk, self.rng.randint(2, 9)
        order = self.order("delivered", self.rng.randint(0, 5), late)
        credit = min(self.world.delay_cap, late * self.world.delay_credit)
        known = {"order": order.id, "branch": order.branch.name, "amount": self.world.money(credit)}
        yield from desk.ask("open_delay", **known)
        seen = desk.get_order(order)
        desk.policy("delay")
        promised = self.world.dates(order.promised)[0]
        said = desk.reply("answer_delay", promised=promised, delivered=self.delivered(order), **known)
        if desk.quiz.wants("temporal"):
            desk.probe("temporal", "late", self.days(late), [seen, said], order=order.id)
        yield
        yield from desk.ask("ask_take")
        ref, done = self.refund(order, credit, "late_delivery")
        said = desk.reply("answer_take", ref=ref, **known)
        self.refunds.append((order, credit, done, said))
        yield

    def _cancel(self) -> Iterator[None]:
        desk, order = self.desk, self.order("open", 1)
        product, count = line_of(order, self.rng)
        amount = product.price * count
        known = {"product": product.name, "order": order.id, "amount": self.world.money(amount)}
        yield from desk.ask("open_cancel", **known)
        desk.get_order(order)
        ref = self.world.number("refund", "RF-{}")
        order.lines.remove((product, count))
        gone: dict[str, object] = {
            "order": order.id,
            "sku": product.sku,
            "product": product.name,
            "quantity": count,
            "reference": ref,
        }
        gone |= {
            "refunded": f"{amount / 100:.2f}",
            "currency": desk.language.currency,
            "new_total": f"{order.total / 100:.2f}",
        }
        gone |= {"remaining": [f"{held} × {one.name}" for one, held in order.lines], "method": desk.language.bank}
        done = desk.tool("cancel_item", {"order": order.id, "sku": product.sku}, gone)
        said = desk.reply("answer_cancel", after=self.over_limit(amount), ref=ref, **known)
        self.refunds.append((order, amount, done, said))
        yield

    def _total(self) -> Iterator[None]:
        if len(self.refunds) < 2:
            yield from self.damaged_case()
            return
        (one, first, *shown), (two, second, *more) = self.rng.sample(self.refunds[-30:], 2)
        money = self.world.money
        known = {"order": one.id, "order2": two.id}
        yield from self.desk.ask("open_total", **known)
        total = {"amount": money(first), "amount2": money(second), "total": money(first + second)}
        self.desk.reply("answer_total", **known, **total)
        if self.desk.quiz.wants("multi_hop"):
            answers = amounts(self.world, first + second)
            self.desk.probe("multi_hop", "sum", answers, [*shown, *more], **known)
        yield

    def _recall(self) -> Iterator[None]:
        if self.returns and (self.rng.random() < 0.5 or not self._trackings):
            order, product, value = self.rng.choice(self.returns)
            kind = "rma"
        elif self._trackings:
            order, product, kind = self.rng.choice(self._trackings)[0], "", "tracking"
            value = order.tracking
        else:
            yield from self._status()
            return
        yield from self.desk.ask(f"open_recall_{kind}", order=order.id, product=product)
        self.desk.reply(f"answer_recall_{kind}", order=order.id, product=product, value=value)
        yield
