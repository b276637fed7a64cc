"""Traps in who speaks, in what order, and which word holds."""

from __future__ import annotations

from ...model import Conversation
from ..script import Script


def contradictions() -> Conversation:
    """Facts that are stated, denied and corrected; the last word holds."""
    script = Script("traps/contradictions", language="en", start="2026-02-02T08:15:00")
    script.note("trap", "facts are stated, denied and corrected: a summary that keeps the first version is wrong")
    script.system("You keep the files of a small clinic. The latest statement of the staff holds.")
    script.user("Room 4 is booked for Dr Adeyemi on Thursday at 14:00. The patient is allergic to penicillin.")
    script.assistant("Noted: room 4, Dr Adeyemi, Thursday 14:00, allergy to penicillin.")
    script.wait(minutes=12)
    script.user("No, wait. It is not penicillin. I was reading the chart of the next patient. No allergies are known.")
    script.assistant("Understood, I have taken the penicillin allergy out. No known allergies.")
    script.wait(hours=2)
    room = script.user("Room 4 has a broken lamp. Dr Adeyemi moves to room 7, same time.")
    script.assistant("Moved to room 7. Room 4 is free on Thursday.")
    script.user("Somebody told me that it is room 9. Is it?")
    script.assistant("By what I have here it is room 7. Nobody has told me of room 9.")
    script.user("Good. Room 9 was a rumour, forget it.")
    script.assistant("Forgotten. Room 7 stands.")
    script.wait(days=1)
    allergy = script.user("The lab called: the patient does have an allergy after all. It is latex, not penicillin.")
    script.assistant("Entered: allergy to latex. Penicillin stays off the list.")
    script.user("And 14:00 is too early, they come from the coast. What else is free?")
    script.assistant("In the same room 15:30 and 16:45 are free.")
    time = script.user("Take 16:45. Hm, no: 15:30, the last train goes at six.")
    script.assistant("Then it is 15:30 on Thursday, not 14:00 and not 16:45.")
    script.probe("In which room does Dr Adeyemi see the patient?", ["room 7", "7"], [room], "updated_fact")
    script.probe("Which allergy does the patient have?", ["latex"], [allergy], "updated_fact")
    script.probe("At what time is the appointment on Thursday?", ["15:30", "3:30 pm"], [time], "updated_fact")
    script.probe("What is the patient's date of birth?", [], [], "unanswerable")
    return script.done()


def system_changed() -> Conversation:
    """The rules are replaced midway by a new system message."""
    script = Script("traps/system_changed", language="en", start="2026-02-03T09:00:00")
    script.note("trap", "a second system message replaces the first midway: a strategy that pins the first one errs")
    old = script.system(
        "You are the help desk of the Aldermoor library. Loans last 21 days. A late book costs 20 pence a day. "
        "Answer in one sentence. Refuse questions on the staff."
    )
    script.user("How long may I keep a novel?")
    script.assistant("You may keep a novel for 21 days.")
    script.probe("What does a late book cost per day?", ["20 pence", "£0.20", "20p"], [old], "single_hop")
    script.user("And what if I bring it back four days late?")
    script.assistant("Four days late would cost you 80 pence.")
    script.wait(days=9)
    new = script.system(
        "Rules from today; all earlier rules are void. You are the help desk of the Aldermoor library. Loans last 28 "
        "days. Late books no longer cost anything, but a reader with a book more than 14 days late is blocked. Answer "
        "in at most three sentences, and name the desk that can help."
    )
    script.user("I have a travel guide since last month. What happens if it is late now?")
    script.assistant("Nothing to pay. You are blocked only after 14 days. The loans desk can lift a block.")
    script.user("Then I keep it until the weekend.")
    script.assistant("That is fine. If in doubt, ask the loans desk.")
    script.probe("How many days does a loan last by the rule in force?", ["28 days", "28"], [new], "updated_fact")
    script.probe(
        "After how many days of delay is a reader blocked, by the rule in force?",
        ["14 days", "14"],
        [new],
        "single_hop",
    )
    script.probe("How long was a loan under the first rules?", ["21 days", "21"], [old], "temporal")
    return script.done()


def several_systems() -> Conversation:
    """Several system messages at the start, and more between the turns."""
    script = Script("traps/several_systems", language="en", start="2026-02-04T10:00:00")
    script.note("trap", "several system messages at the start and between turns: all of them are in force")
    script.system("You are the night porter of the Hotel Seeblick.")
    code = script.system("Guests may ask for the code of the side door after 23:00. It is 7-1-1-9.")
    script.system("Never give out the room number of another guest.")
    script.user("Good evening. I have left my umbrella at breakfast, a green one.")
    script.assistant("Good evening. I will look in the breakfast room.")
    found = script.system("Note from housekeeping: a green umbrella was handed in and hangs on hook 14.")
    script.user("Any luck?")
    script.assistant("Yes, it is here. It hangs on a hook behind the desk.")
    shuttle = script.system("Note from the front office: the first shuttle tomorrow leaves at 05:40, not at 06:10.")
    script.system("")
    script.user("Wonderful. And how do I get in after eleven?")
    script.assistant("By the side door. I can give you the code after 23:00.")
    script.probe("On which hook does the umbrella hang?", ["hook 14", "14"], [found], "single_hop")
    script.probe("When does the first shuttle leave tomorrow?", ["05:40", "5:40"], [shuttle], "updated_fact")
    script.probe("What is the code of the side door?", ["7-1-1-9", "7119"], [code], "single_hop")
    return script.done()


def first_assistant() -> Conversation:
    """The assistant speaks first, twice, before any user."""
    script = Script("traps/first_assistant", language="en", start="2026-02-05T07:30:00")
    script.note("trap", "the assistant speaks first, without system or user: some providers refuse such a request")
    hello = script.assistant("Good morning, this is the boat hire at Kestrel Quay. We open at 08:30 today.")
    wind = script.assistant("A warning before you ask: no rowing boats until the wind drops below 5 Beaufort.")
    script.user("Oh. And the pedal boats?")
    script.assistant("Pedal boats stay within the harbour wall, so they go out. 18 euros an hour.")
    script.user("Two of them, please, from ten to twelve.")
    script.assistant("Two pedal boats from 10:00 to 12:00, 72 euros. Please bring a card for the deposit.")
    script.probe("When does the boat hire open today?", ["08:30", "8:30"], [hello], "single_hop")
    script.probe("Below which wind do rowing boats go out again?", ["5 Beaufort"], [wind], "single_hop")
    return script.done()
