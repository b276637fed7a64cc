"""The rules of the shop in customer_service, in English: what a search of them brings, subject by subject."""

from __future__ import annotations

RULES: dict[str, tuple[str, ...]] = {
    "policy_return": (
        "Returns §{n}: the period of {return_days} days starts with the delivery of the last parcel of an order.",
        "Sealed means that the inner seal is untouched; an opened outer box does no harm.",
        "If the goods were opened, {fee} percent of the price are kept for testing and new packaging.",
        "The label is valid for {label_days} days and may be printed twice. A replacement costs {label_fee}.",
        "Store credit carries a bonus of {bonus} percent and does not expire. It cannot be turned into money later.",
        "The way of refund may be changed until the parcel was scanned at our gate.",
        "Parcels without a return number are put aside for {n} days and sent back after that.",
    ),
    "policy_damage": (
        "Transport damage §{n}: it counts as reported in time within {damage_days} days of delivery.",
        "Ask for pictures only above {keep_limit}. Below that we trust the customer.",
        "The carrier's form is filled in by us; the customer signs nothing.",
        "After a refund the damaged goods stay the property of the shop for {n} weeks.",
        "If several pieces of one parcel are damaged, open one case for all of them.",
        "Refunds above {approval_limit} need a second person; tell the customer that it takes up to {hours} hours.",
    ),
    "policy_warranty": (
        "Warranty §{n}: {warranty_months} months from delivery, {battery_months} months for batteries and power "
        "supplies.",
        "The serial number decides, not the invoice. Exchanged devices keep the warranty of the first one.",
        "Repairs take {repair_days} working days. If a device is away for longer, a loan device is sent at once.",
        "Broken glass and liquids are not covered; offer a repair at cost and name a price first.",
        "A device that fails for the third time with the same fault is exchanged.",
    ),
    "policy_delay": (
        "Late delivery §{n}: {delay_credit} for each full day, {delay_cap} at most for one order.",
        "The day promised in the first confirmation counts, unless the customer moved it.",
        "Strikes and storms are no excuse towards business customers.",
        "The credit is deducted from the next invoice; on request it is paid out after {n} days.",
        "Moving a delivery once is free. From the second time on it costs {move_fee}.",
    ),
}
