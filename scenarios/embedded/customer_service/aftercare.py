"""The cases of customer_service about goods that were delivered: sent back, damaged, in need of repair."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from .acts import Acts
from .desk import Desk, line_of
from .world import Order


class Aftercare(Acts):
    """What a customer asks for once the goods are there, and the refunds and returns that come of it."""

    def __init__(self, desk: Desk) -> None:
        super().__init__(desk)
        self.refunds: list[tuple[Order, int, str, str]] = []
        """Order, cents, and the ids of the two messages that show it."""
        self.returns: list[tuple[Order, str, str]] = []
        """Order, product, return number."""

    def return_case(self) -> Iterator[None]:
        """Something is sent back for money, and then for credit."""
        desk, world = self.desk, self.world
        order = self.order("delivered", self.rng.randint(3, 15))
        product, held = line_of(order, self.rng)
        count = self.rng.randint(2, held)
        amount = count * product.price
        known = {"product": product.name, "order": order.id, "count": str(count), "amount": world.money(amount)}
        yield from desk.ask("open_return", reason=desk.clause("reason"), **known)
        seen = desk.get_order(order)
        desk.policy("return")
        desk.reply("answer_return", delivered=self.delivered(order), **known)
        self.lead_probe(order, seen)
        yield
        yield from desk.ask("ask_bank")
        rma, until = world.number("return", "RMA-{}"), self.script.now.date() + timedelta(days=world.days["label_days"])
        made: dict[str, object] = {
            "return": rma,
            "order": order.id,
            "sku": product.sku,
            "quantity": count,
            "amount": f"{amount / 100:.2f}",
        }
        made |= {"refund_method": desk.language.bank, "label_valid_until": until.isoformat(), "status": "label_sent"}
        made |= {"carrier": order.carrier, "label": world.number("label", "LB{}"), "drop_off": world.new_address()}
        asked = {"order": order.id, "sku": product.sku, "quantity": count, "refund_method": desk.language.bank}
        done = desk.tool("create_return", asked, made)
        said = desk.reply("answer_bank", after=self.over_limit(amount), rma=rma, until=world.dates(until)[0], **known)
        self.returns.append((order, product.name, rma))
        if desk.quiz.wants("single_hop"):
            desk.probe("single_hop", "rma", [rma], [done, said], **known)
        if desk.quiz.wants("temporal"):
            desk.probe("temporal", "label", world.dates(until), [done, said], rma=rma)
        yield
        if self.rng.random() < 0.3:
            return
        yield from desk.ask("ask_credit", rma=rma)
        told, credit = desk.told, amount * (100 + world.days["bonus"]) // 100
        new: dict[str, object] = {
            "return": rma,
            "refund_method": desk.language.credit,
            "was": desk.language.bank,
            "status": "changed",
        }
        new |= {
            "amount": f"{amount / 100:.2f}",
            "bonus": f"{(credit - amount) / 100:.2f}",
            "credit": f"{credit / 100:.2f}",
        }
        new |= {"order": order.id, "sku": product.sku, "quantity": count, "label_valid_until": until.isoformat()}
        changed = desk.tool("update_return", {"return": rma, "refund_method": desk.language.credit}, new)
        agreed = desk.reply("answer_credit", rma=rma, credit=world.money(credit))
        if desk.quiz.wants("updated_fact"):
            desk.probe("updated_fact", "method", desk.language.methods, [told, changed, agreed], rma=rma)
        yield

    def damaged_case(self) -> Iterator[None]:
        """Something arrived broken and is refunded."""
        desk, order = self.desk, self.order("delivered", self.rng.randint(0, 2))
        product, _ = line_of(order, self.rng)
        known = {"product": product.name, "order": order.id, "amount": self.world.money(product.price)}
        known |= {"branch": order.branch.name, "contact": order.branch.contact}
        yield from desk.ask("open_damaged", damage=desk.say("damage"), **known)
        seen = desk.get_order(order)
        if self.rng.random() < 0.5:
            desk.policy("damage")
        desk.reply("answer_damaged", **known)
        self.phone_probe(order, seen)
        yield
        yield from desk.ask("ask_refund", **known)
        ref, done = self.refund(order, product.price, "transport_damage")
        said = desk.reply("answer_refund", after=self.over_limit(product.price), ref=ref, **known)
        if desk.quiz.wants("single_hop"):
            desk.probe("single_hop", "refund_ref", [ref], [done, said], order=order.id)
        self.refunds.append((order, product.price, done, said))
        yield

    def warranty_case(self) -> Iterator[None]:
        """Is it still covered? Then it is repaired."""
        desk, world, branch = self.desk, self.world, self.rng.choice(self.world.branches)
        product, serial = self.rng.choice(world.products), world.number("serial", "SN{}" + self.rng.choice("AFKQ"))
        known = {"product": product.name, "serial": serial, "branch": branch.name, "contact": branch.contact}
        yield from desk.ask("open_warranty", fault=desk.clause("fault"), **known)
        delivered = self.script.now.date() - timedelta(days=self.rng.randint(90, 600))
        until = delivered + timedelta(days=world.days["warranty_months"] * 365 // 12)
        found: dict[str, object] = {
            "serial": serial,
            "product": product.name,
            "sku": product.sku,
            "delivered": delivered.isoformat(),
        }
        found |= {"months": world.days["warranty_months"], "covered_until": until.isoformat(), "earlier_repairs": 0}
        found |= {"branch": branch.name, "order": world.number("order", f"{world.shop_code}-{delivered:%y}-{{}}")}
        seen = desk.tool("check_warranty", {"serial": serial}, found | {"exclusions": []}, quiet=False)
        desk.policy("warranty")
        dates = {"delivered": world.dates(delivered)[0], "until": world.dates(until)[0]}
        said = desk.reply("answer_warranty", **dates, **known)
        if desk.quiz.wants("temporal"):
            desk.probe("temporal", "warranty", world.dates(until), [seen, said], serial=serial)
        yield
        yield from desk.ask("ask_repair", **known)
        ticket, day = world.number("repair", "RP-{}"), self.script.now.date() + timedelta(days=self.rng.randint(1, 4))
        carrier = self.rng.choice(desk.language.carriers)
        made: dict[str, object] = {
            "ticket": ticket,
            "serial": serial,
            "branch": branch.name,
            "collect_on": day.isoformat(),
        }
        made |= {"carrier": carrier, "window": self.window(), "collect_at": branch.address, "contact": branch.contact}
        done = desk.tool("create_repair", {"serial": serial, "branch": branch.name}, made | {"phone": branch.phone})
        said = desk.reply("answer_repair", ticket=ticket, date=world.dates(day)[0], carrier=carrier, **known)
        if desk.quiz.wants("single_hop"):
            desk.probe("single_hop", "ticket", [ticket], [done, said], serial=serial)
        yield
