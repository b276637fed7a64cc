"""What the agent of customer_service does in several kinds of cases, and the questions that go with it."""

from __future__ import annotations

import re
from datetime import timedelta

from .desk import Desk
from .world import Order


class Acts:
    """Steps that cases share. `desk` is where they happen."""

    def __init__(self, desk: Desk) -> None:
        self.desk, self.rng, self.world, self.script = desk, desk.rng, desk.world, desk.script
        self._curious = 1.0

    def order(self, status: str, ago: int, late: int = 0) -> Order:
        """A new order: one on its way was placed so many days ago, a delivered one has come so many days ago."""
        placed = self.script.now.date() - timedelta(days=ago)
        order = self.world.order(status, placed, late=late)
        if order.delivered:
            shift = order.delivered - placed
            order.placed, order.promised, order.delivered = placed - shift, order.promised - shift, placed
        return order

    def over_limit(self, cents: int) -> str:
        """What to add when somebody else has to confirm an amount."""
        if cents <= self.world.approval_limit:
            return ""
        return self.desk.language.joint + self.desk.say("over_limit")

    def address_forms(self, address: str) -> list[str]:
        """An address in full, and without town or postcode."""
        return [address, re.split(r", |（", address)[0]]

    def delivered(self, order: Order) -> str:
        """The day of delivery for a sentence."""
        assert order.delivered is not None
        return self.world.dates(order.delivered)[0]

    def refund(self, order: Order, cents: int, reason: str) -> tuple[str, str]:
        """Pay back an amount; returns its reference and the id of the result's message."""
        ref, language = self.world.number("refund", "RF-{}"), self.desk.language
        amount = f"{cents / 100:.2f}"
        due = self.script.now.date() + timedelta(days=self.world.days["bank_days"] + 2)
        entry = {"reference": ref, "amount": amount, "reason": reason, "booked": f"{self.script.now:%Y-%m-%d}"}
        order.refunds.append(entry)
        more = {"order": order.id, "currency": language.currency, "method": language.bank, "ending": self.world.bank}
        more |= {"expected_on": due.isoformat(), "order_total": f"{order.total / 100:.2f}", "booked_by": "A-17"}
        more |= {
            "second_approval": "pending" if cents > self.world.approval_limit else "not required",
            "document": self.world.number("document", "CN-{}"),
        }
        done = self.desk.tool("issue_refund", {"order": order.id, "amount": amount, "reason": reason}, entry | more)
        return ref, done

    def save_address(self, branch: str, address: str, before: str) -> str:
        """Change the address of a branch; returns the id of the result's message."""
        waiting = [one.id for one in self.world.orders[branch] if one.delivered is None]
        result = {
            "branch": branch,
            "address": address,
            "was": before,
            "check": "deliverable",
            "orders_affected": waiting,
        }
        result |= {"carriers": list(self.desk.language.carriers), "valid_from": f"{self.script.now:%Y-%m-%d}"}
        result |= {"change": self.world.number("change", "AC-{}"), "confirmed_by": self.world.buyer}
        return self.desk.tool("update_address", {"branch": branch, "address": address}, result)

    def save_invoice(self, order: Order, po: str) -> tuple[str, str]:
        """Write an invoice anew; returns its number and the id of the result's message."""
        invoice, total = self.world.number("invoice", "IN-{}"), order.total
        result = {"invoice": invoice, "replaces": self.world.number("invoice", "IN-{}"), "order": order.id}
        result |= {"purchase_order": po, "net": f"{total / 119:.2f}", "total": f"{total / 100:.2f}"}
        due = self.script.now.date() + timedelta(days=30)
        more = {"currency": self.desk.language.currency, "due": due.isoformat(), "sent_to": self.desk.language.mail}
        more |= {"branch": order.branch.name, "format": "PDF/A-3", "archived": f"inv/{invoice.lower()}.pdf"}
        return invoice, self.desk.tool("update_invoice", {"order": order.id, "purchase_order": po}, result | more)

    def window(self) -> str:
        """Hours in which a carrier comes."""
        start = self.rng.randint(8, 14)
        return f"{start:02d}:00-{start + 3:02d}:00"

    def days(self, count: int) -> list[str]:
        """Ways to write a number of days."""
        text = self.desk.language.days.format(count=count)
        return [text, str(count)]

    def phone_probe(self, order: Order, seen: str) -> None:
        """Perhaps: whose branch got this order, and what is the telephone number there?"""
        if self.desk.shown_customer and self.rng.random() < self._curious and self.desk.quiz.wants("multi_hop"):
            self._curious = 0.08
            evidence = [self.desk.shown_customer, seen]
            phone = order.branch.phone
            self.desk.probe("multi_hop", "phone", [phone, phone.replace(" ", "")], evidence, order=order.id)

    def lead_probe(self, order: Order, seen: str) -> None:
        """Perhaps: how long did this order take?"""
        if order.delivered and self.rng.random() < 0.5 and self.desk.quiz.wants("temporal"):
            lead = (order.delivered - order.placed).days
            self.desk.probe("temporal", "lead", self.days(lead), [seen], order=order.id)
