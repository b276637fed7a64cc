"""The rules of the shop and how customer and agent of customer_service talk, in English."""

from __future__ import annotations

SYSTEM = """You are the service agent of {shop}, an online shop for office electronics, and you look after the \
business account of {company} (customer number {customer}). You write with {buyer}, who orders for all branches. \
Today's date and the time come with every tool result.

1. Identity
1.1 On every new day, ask for the code word before you read or change anything. Check it with `verify_identity`.
1.2 After {tries} wrong code words end the conversation and point to the telephone line, open 07:30 to 19:00.
1.3 Never print a code word, a full bank account or a card number. The last four characters are enough.

2. Returns
2.1 Goods may be returned within {return_days} days of delivery. Sealed goods are refunded in full.
2.2 For opened goods we keep {fee} percent of the price; headsets and ink that were opened cannot be returned.
2.3 A return label is valid for {label_days} days. After that a new one costs {label_fee}.
2.4 Refunds go to the bank account within {bank_days} working days, or at once as store credit with a bonus of {bonus} \
percent. The customer chooses and may change the choice until the parcel has arrived with us.

3. Damage and warranty
3.1 Transport damage must be reported within {damage_days} days. Do not ask for a return of goods under {keep_limit}.
3.2 The warranty is {warranty_months} months from delivery, {battery_months} months for batteries and power supplies.
3.3 Repairs take {repair_days} working days; lend a device if it takes longer.

4. Delivery
4.1 Delivery days can be moved once for free, then for {move_fee} each time, up to {move_days} days ahead.
4.2 For each full day of delay we credit {delay_credit}, at most {delay_cap} for one order. Offer it unasked.
4.3 An address can be changed until the parcel is handed to the carrier. Read the new address back, letter by letter.

5. Money
5.1 You may refund up to {approval_limit} on your own; above that say that a colleague confirms within {hours} hours.
5.2 Always name the amount, the reference and when the money arrives. Amounts include VAT.
5.3 Purchase order numbers on invoices may be corrected for {invoice_days} days; the invoice gets a new number.

6. Manner
6.1 Look things up before you answer; use `search_policy` when a rule is in doubt. Do not promise what no rule allows.
6.2 One case at a time. If the customer changes something that was agreed, repeat what is valid now.
6.3 Be short and friendly, no emojis. Dates like 4 March 2026, amounts like €149.90."""

FRAMES: dict[str, tuple[str, ...]] = {
    "ask_identity": (
        "Good morning! I will gladly look into that. May I have your code word first, as it is a new day?",
        "Hello, I will take care of it. Before I open the account I need today's check: what is your code word?",
        "Sure. One formality first: please give me the code word of the account.",
    ),
    "give_identity": (
        "Of course, it is {word}.",
        "{word}",
        "The code word is {word}. Customer number {customer}, if you need that too.",
        "Same as ever: {word}.",
    ),
    "reason": (
        "they turned out to be too loud for an open office",
        "the colleague who wanted them has left",
        "they do not fit the brackets we have",
        "somebody ordered the wrong colour",
        "the department got a different budget and cannot keep them",
        "we found a box of the same in the basement",
        "the cable is far too short for our desks",
    ),
    "damage": (
        "The corner of the box was crushed and the casing is cracked.",
        "It rattles when you lift it, and one foot has come off.",
        "The driver left it in the rain; it does not switch on.",
        "There is a scratch right across the front, ten centimetres long.",
        "The seal was broken and a part of the accessories is missing.",
    ),
    "fault": (
        "switches itself off after about ten minutes",
        "shows a flickering line at the left edge",
        "no longer charges, whatever cable we use",
        "makes a grinding noise since last week",
        "is not recognised by any of our computers",
        "loses the network every few hours",
    ),
    "look": ("", "", "I am looking that up.", "One moment please.", "Let me check.", "I will open the order."),
    "open_status": (
        "Where is the {product} for {branch}? {contact} keeps asking me.",
        "Could you check on the delivery for {branch}, please? It is the order with the {product}.",
        "{branch} is waiting for a {product} that we ordered {ago} days ago. Any news?",
        "Hi, I would like to know when the {product} gets to {branch}.",
    ),
    "answer_status": (
        "The {product} is part of order {order}. It is with {carrier} under the tracking number {tracking} and "
        "should reach "
        "{branch} on {promised}.",
        "I found it: order {order}, handed to {carrier}, tracking number {tracking}. The delivery is planned for "
        "{promised}.",
        "Order {order} for {branch} is on its way. {carrier} has it as {tracking} and plans the delivery for "
        "{promised}.",
    ),
    "ask_move": (
        "Nobody is there on that day. Can they deliver {order} on {date} instead?",
        "That is bad, the branch is closed then. Please move it to {date}.",
        "Hm, {contact} is at a fair that day. {date} would work.",
    ),
    "answer_move": (
        "Done. {order} will be delivered on {date} instead of {old}; the change is free and has the reference {ref}.",
        "I moved the delivery of {order} from {old} to {date} (reference {ref}). {contact} gets a message from "
        "the carrier.",
    ),
    "open_return": (
        "We want to send back {count} × {product} from order {order}, {reason}.",
        "New topic: {count} pieces of {product} in {order} have to go back, {reason}. Is that still possible?",
        "Can I return {count} of the {product} from {order}? The thing is, {reason}. They are still sealed.",
    ),
    "answer_return": (
        "Yes, that works: the goods came on {delivered} and the {return_days} days are not over. As they are "
        "sealed, you get "
        "{amount} back for {count} pieces. Would you like it on the bank account or as store credit with {bonus} "
        "percent on top?",
        "No problem. Delivery was on {delivered}, so you are within {return_days} days, and {count} pieces come "
        "to {amount}. "
        "Bank transfer, or store credit with a bonus of {bonus} percent?",
    ),
    "ask_bank": (
        "To the bank account, please, our bookkeeper does not like credit.",
        "Bank transfer, as always.",
        "Please transfer it to our account.",
    ),
    "answer_bank": (
        "The return is set up under {rma}. I have sent the label to {mail}; it is valid until {until}. {amount} "
        "will be on the "
        "account ending in {bank} within {bank_days} working days of its arrival.",
        "Your return number is {rma} and the label can be used until {until}. Once the parcel is here, {amount} "
        "go to the "
        "account ending in {bank}.",
    ),
    "ask_credit": (
        "About {rma}: my boss prefers the store credit with the bonus. Can you still change that?",
        "I changed my mind on {rma}, please make it store credit after all.",
        "One more thing on return {rma}. We take the credit instead of the transfer.",
    ),
    "answer_credit": (
        "Changed: {rma} will now be paid as store credit, {credit} including the bonus, and no longer by bank "
        "transfer.",
        "Gladly. For {rma} the refund method is now store credit ({credit} with the bonus) instead of bank transfer.",
    ),
    "open_damaged": (
        "The {product} from {order} arrived at {branch} damaged. {damage}",
        "Bad news from {branch}: {damage} It is the {product} of order {order}.",
        "We need help with {order}. {damage} I am talking about the {product}.",
    ),
    "answer_damaged": (
        "I am sorry about that. The report is within {damage_days} days, so you can choose between a new "
        "{product} and a refund "
        "of {amount}. You need not send the damaged one back before we ask for it.",
        "That should not happen, my apologies. I can refund {amount} for the {product} or send another one. What "
        "do you prefer?",
    ),
    "ask_refund": (
        "Refund, please. We have bought another one in town already.",
        "We take the money back.",
        "A refund then, {contact} cannot wait for a second one.",
    ),
    "answer_refund": (
        "I have refunded {amount} for {order}. The reference is {ref}, and the money arrives within {bank_days} "
        "working days.",
        "Refund {ref} over {amount} for order {order} is on its way to the account ending in {bank}.",
    ),
    "over_limit": (
        "As this is above {approval_limit}, a colleague confirms it within {hours} hours.",
        "The amount is over {approval_limit}, so a second person has to confirm it; that takes up to {hours} hours.",
    ),
    "open_address": (
        "{branch} has moved. The new address is {address}. Please change it for all future orders.",
        "Could you update the delivery address of {branch}? From now on: {address}.",
        "We have a new address for {branch}: {address}.",
    ),
    "answer_address": (
        "I have saved {address} for {branch}. Is every letter of that right?",
        "Thank you. {branch} now has the address {address}; please check it once more.",
    ),
    "ask_fix": (
        "Sorry, my mistake. The correct address of {branch} is {address}, I mixed something up.",
        "Not quite: it has to be {address}. {contact} just told me.",
        "Wait, {branch} says it is {address}.",
    ),
    "answer_fix": (
        "Corrected. For {branch}, only {address} is valid now.",
        "No harm done, it had not been used yet. {branch}: {address}.",
    ),
    "open_invoice": (
        "The invoice for {order} has no purchase order number. Please put {po} on it.",
        "Our bookkeeping rejects the invoice of {order}. It needs the reference {po}.",
    ),
    "answer_invoice": (
        "The invoice for {order} was written anew as {invoice} and shows the purchase order number {po}. It is in "
        "your mail.",
        "Done: invoice {invoice} replaces the old one for {order}, with {po} as purchase order number.",
    ),
    "ask_po": (
        "I gave you the wrong one, sorry. The purchase order number for {order} is {po}.",
        "Bookkeeping again: for {order} it must read {po} and not what I wrote earlier.",
    ),
    "answer_po": (
        "Corrected once more. Invoice {invoice} for {order} now carries {po}.",
        "All right, {po} it is. The valid invoice for {order} is {invoice}; please throw away the earlier one.",
    ),
    "open_warranty": (
        "A {product} at {branch} {fault}. Serial number {serial}. Is there still warranty on it?",
        "We have a defective {product} ({serial}), it {fault}. What can be done?",
    ),
    "answer_warranty": (
        "The device {serial} was delivered on {delivered} and is covered until {until}. Shall I order a repair "
        "with pick-up?",
        "Good news: for {serial} the warranty runs until {until}. I can have it collected for repair if you like.",
    ),
    "ask_repair": (
        "Yes please, pick it up at {branch}. {contact} is there all day.",
        "Please do. The sooner the better.",
    ),
    "answer_repair": (
        "The repair has the ticket {ticket}. {carrier} collects the device on {date}, and it takes about "
        "{repair_days} working "
        "days.",
        "Booked: ticket {ticket}, collection on {date} at {branch}. You will have it back after {repair_days} "
        "working days.",
    ),
    "open_delay": (
        "Order {order} came far too late again. What do you say to that?",
        "{branch} complains that {order} was late. Are we entitled to anything?",
    ),
    "answer_delay": (
        "You are right: {order} was promised for {promised} and arrived on {delivered}. For the delay you are "
        "owed a credit of "
        "{amount}. Shall I book it?",
        "I apologise. Planned was {promised}, delivered on {delivered}; that makes a credit of {amount}. May I "
        "book it?",
    ),
    "ask_take": ("Yes, please book it.", "Thank you, we will take it.", "Fair enough. Please do."),
    "answer_take": (
        "The credit of {amount} for {order} is booked under {ref} and will be deducted from the next invoice.",
        "Booked: {amount} for {order}, reference {ref}.",
    ),
    "open_cancel": (
        "Please take the {product} out of order {order}, we do not need it any more.",
        "Can you cancel just the {product} in {order}? The rest should come as planned.",
    ),
    "answer_cancel": (
        "The {product} is cancelled; the rest of {order} stays. {amount} go back to you under the reference {ref}.",
        "Done, order {order} now comes without the {product}, and I have refunded {amount} (reference {ref}).",
    ),
    "open_total": (
        "For my report: how much did you refund for {order} and {order2} together?",
        "Can you add up what we got back for {order} and for {order2}?",
    ),
    "answer_total": (
        "For {order} it was {amount}, for {order2} {amount2}, so {total} together.",
        "{amount} for {order} plus {amount2} for {order2} makes {total}.",
    ),
    "open_recall_tracking": (
        "What was the tracking number for {order} that you gave me?",
        "I lost my notes. Under which number does the carrier have {order}?",
    ),
    "answer_recall_tracking": (
        "For {order} it is {value}.",
        "The tracking number of {order} is {value}, as I wrote before.",
    ),
    "open_recall_rma": (
        "Which return number did the {product} from {order} have again?",
        "Remind me of the return number for {order}, please. It is about the {product}.",
    ),
    "answer_recall_rma": ("It was {value}.", "The return from {order} has the number {value}."),
    "event": (
        "order received from the business portal",
        "payment terms checked, {days} days net",
        "stock of {n} pieces reserved in {depot}",
        "picked in hall {n}, shelf {shelf}",
        "packed by station {n}, weight {weight} kg",
        "waiting for the second parcel of the same order",
        "label printed at gate {n}",
        "handed to {carrier}",
        "sorted in the depot {depot}",
        "mail with the delivery window sent to {contact}",
    ),
    "order_note": (
        "Goods entrance is at the back, ring twice.",
        "Please deliver before 11:00 if possible.",
        "Cost centre {n}{n2}00.",
        "Leave with the reception on floor {n}.",
        "Pallets only with a tail lift.",
        "Call {contact} half an hour ahead.",
    ),
}
