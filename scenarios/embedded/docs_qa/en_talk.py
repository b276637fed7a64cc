"""How the user asks and the assistant answers in docs_qa, in English."""

from __future__ import annotations

TALK: dict[str, tuple[str, ...]] = {
    "ask_setting": (
        "{Question} I need the default for the hand-over sheet, with the key.",
        "{person} asks: {question} Please give me the key as well.",
        "{Question} Our copy at {site} was changed so often that nobody knows the original value.",
        "Next item on my list: {question}",
        "For the audit questionnaire I have to fill in this one: {question} A path to the page would help.",
        "{Question} I could not find it in the interface under {page}.",
        "New subject, {area}: {question} The people in {site} are waiting for it.",
        "Something simpler. {Question}",
        "Before I forget it: {question} {person} insists that it used to be lower.",
    ),
    "answer_setting": (
        "By default, {statement} (`{key}`, {path}).\n\n{note}",
        "{value_bold}: {statement}. The key is `{key}` and the page is {path}.\n\n{note}",
        "The reference says that {statement}. It is the default of `{key}` ({path}). {note}",
        "According to {path}, {statement}, unless somebody has changed `{key}`.\n\nWorth knowing: {note}",
    ),
    "again": (
        "The first search shows the chapter but not the exact line, so I search once more.",
        "I have the context now; one more search for the exact passage.",
        "That gave the background. Let me look at the neighbouring page as well.",
    ),
    "look": ("", "", "Let me look that up.", "I search the documentation for it.", "One moment, I check the pages."),
    "ask_procedure": (
        "How do I {goal}? I need the steps one by one.",
        "{person} at {site} wants to {goal}. What exactly has to be done, in which order?",
        "Please list the steps to {goal}; I will paste them into our ticket.",
        "We have to {goal} before the end of the week. How does that work in {product}?",
        "I have never had to {goal}. Can you walk me through it?",
    ),
    "answer_procedure": (
        "These are the steps to {goal} ({path}):\n\n{list}\n\n{note}",
        "The documentation describes it in {path}. To {goal}:\n\n{list}\n\nGood to know: {note}",
        "To {goal}, proceed as follows:\n\n{list}\n\nSource: {path}. {note}",
    ),
    "ask_step": (
        "Back to how to {goal}: {person} is stuck at the {ordinal} step you listed earlier. What was it again?",
        "You gave me the steps to {goal}. Can you repeat the {ordinal} one and say what to watch out for?",
        "About the {ordinal} step from your list on how to {goal}: what precisely has to be done there?",
    ),
    "answer_step": (
        "Step {number} was: {step}\n\nWhat to watch out for: {note}",
        "The {ordinal} step of that list reads: {step} {note}",
        "That is this one: {step}\n\nIt comes right after step {before}. {note}",
    ),
    "ask_pair": (
        "Two values for one table, please. {Question} And {question2}",
        "I have to compare two settings: {question} And likewise, {question2}",
        "{Question} While you are at it, {question2} I want both side by side.",
    ),
    "answer_pair": (
        "Side by side:\n\n- {Statement} (`{key}`, {path}).\n- {Statement2} (`{key2}`, {path2}).",
        "Both are defaults from the reference. {Statement} (`{key}`). {Statement2} (`{key2}`). "
        "Pages: {path} and {path2}.",
    ),
    "ask_since": (
        "Since which version does the setting `{key}` exist? {site} still runs an old one.",
        "{person} cannot find `{key}` on the older cluster. Which version brought it?",
        "Was `{key}` always there, or did it come with some version?",
    ),
    "answer_since": (
        "`{key}` came with version {version} ({path}). Older installations ignore the line in the file.",
        "It has existed since version {version}, as the column *Since* of {path} shows for `{key}`.",
    ),
    "ask_release": (
        "And when was {version} released? I need the date for the contract.",
        "Good. What is the release date of version {version}?",
        "Then please also tell me when {version} came out.",
    ),
    "answer_release": (
        "Version {version} was released on {date} ({day} in the list of changes, {path}).",
        "According to {path} it was {date}: version {version} carries the date {day} there.",
    ),
    "ask_trouble": (
        "{host} has been showing {code} for a while now. What does that mean and what can we do?",
        "{team} at {site} reports the message {code}. Do we have anything on it?",
        "What is {code}? It came up {n} times in the last hour, mostly with {things}.",
        "Got a call from {person}: {code} in the log, users complain. Help!",
    ),
    "answer_trouble": (
        "{code} stands for: {symptom}.\n\nCause: {cause}.\nRemedy: {remedy}.\n\n{note}",
        "{path} knows it as “{symptom}” ({code}). The cause is that {cause}. What helps: {remedy}. {note}",
    ),
    "ask_own": (
        "For your notes: at {site} we have set `{key}` to {own}. Is that within the range, and what does it affect?",
        "{site} runs with `{key}` = {own} from today. Anything in the documentation against that?",
        "We lowered or raised `{key}`, I do not remember which; the value at {site} is {own} now. Is this sensible?",
    ),
    "answer_own": (
        "Noted: {site} uses {own} for `{key}`, where the documentation has {value} as default ({path}). {note}",
        "I take {own} as the value of `{key}` at {site} from here on. The default would be {value}, see {path}. {note}",
    ),
    "ask_own_new": (
        "Correction for {site}: `{key}` is {own} now. {team} changed it again after the last incident.",
        "Please forget the earlier value of `{key}` for {site}, we went to {own}.",
        "Small update. At {site} `{key}` has just been moved to {own}, the old value caused complaints.",
    ),
    "answer_own_new": (
        "Understood, {own} replaces {old} for `{key}` at {site}. I will use {own} whenever you ask about that site.",
        "Updated: `{key}` at {site} is {own} (before: {old}). The default in the documentation is not touched by this.",
    ),
    "ask_plan": (
        "We have scheduled the {occasion} at {site} for {date}. What should be prepared in the chapter on {area}?",
        "Please keep in mind: the {occasion} at {site} takes place on {date}. Which {things} are affected?",
    ),
    "answer_plan": (
        "I have noted {date} for the {occasion} at {site}. From the documentation ({path}):\n\n{note}",
        "{Occasion} at {site} on {date}, noted. To be made sure of beforehand, according to {path}: {note}",
    ),
    "ask_plan_new": (
        "The {occasion} at {site} has been moved to {date}, {person} is on leave before that.",
        "Change of plan: {site} gets its {occasion} on {date} and not on the day I gave you.",
    ),
    "answer_plan_new": (
        "All right, the {occasion} at {site} is now on {date} instead of {old}. The preparations stay the same.",
        "I have moved it: {occasion} at {site}, {date} (formerly {old}).",
    ),
    "ask_news": (
        "{company} published version {version} today. Does it change the default of `{key}`?",
        "Version {version} is out since this morning. Please check the notes for `{key}`.",
    ),
    "answer_news": (
        "Yes. With version {version} the default of `{key}` goes from {old} to {value} ({path}). {note}",
        "It does: {old} before, {value} from version {version} on, for `{key}`. The entry is in {path}. {note}",
    ),
    "ask_value": (
        "What was the value of `{key}` from before? I closed the window.",
        "Remind me: which default did you find for `{key}` earlier?",
        "What was it again, the value from before for `{key}`? {person} says it is twice as much.",
    ),
    "answer_value": (
        "It was {value} for `{key}`; I found it in {path} and nothing since has changed it.",
        "Earlier I quoted {value} as the default of `{key}` ({path}).",
    ),
    "note": (
        "{role} may change it for a single workspace, and the change reaches running {things} within {seconds} "
        "seconds.",
        "Keep in mind that {things} which are already running still follow the old value for up to {minutes} minutes.",
        "If {site} differs from this, the file on `{host}` has the last word.",
        "The page adds that {others} are not touched by it.",
        "Should {things} queue up afterwards, `{cli}` shows where.",
        "{role} gets a mail as soon as more than {percent} percent of the {things} are affected.",
        "It is wise to try this with {n} {things} first and to tell {team}.",
        "The documentation warns against doing it while `{job}` runs.",
        "I would check with {role} first if {others} of another site are involved.",
        "A restart is not needed; the nodes pick it up within {seconds} seconds.",
        "For more than {hundreds} {things} the page recommends the evening hours.",
        "Nothing in the pages says that this differs between sites.",
    ),
    "step_note": (
        "The next step relies on it, so do not skip it.",
        "If it fails, stop there and tell {team}; going on makes it harder to undo.",
        "{person} should allow {minutes} minutes for it when many {things} are involved.",
        "It can be repeated without harm as long as no {other} was touched in between.",
        "People without the rights of {role} do not see the button for it.",
    ),
    "query": ("{things} {aspect}", "{area} {things}", "{thing} {aspect} default", "{key} {things}"),
    "query_goal": ("how to {goal}", "{goal}", "{area}: {goal}"),
    "probe_setting": (
        "According to the documentation, {question}",
        "What default did the assistant quote for `{key}`?",
    ),
    "probe_step": (
        "In the steps to {goal}, which menu page has to be opened first?",
        "Which page does the first step open if one wants to {goal}?",
    ),
    "probe_trouble": ("Which error code belongs to “{symptom}”?",),
    "probe_sum": ("What is the sum of the defaults of `{key}` and `{key2}`?",),
    "probe_bridge": ("On which date was the version released that introduced `{key}`?",),
    "probe_release": ("When was version {version} released?",),
    "probe_first_date": ("For which date was the {occasion} at {site} planned at first?",),
    "probe_moved": ("By how many days was the {occasion} at {site} put off?",),
    "probe_own": ("Which value does `{key}` have at {site} now?", "What is the present setting of `{key}` at {site}?"),
    "probe_plan": ("On which date does the {occasion} at {site} take place, as last agreed?",),
    "probe_news": ("What is the default of `{key}` in the newest version?",),
    "probe_none": (
        "What is the default of `{reserved}`?",
        "Since which version does `{decoy}` support belong to {product}?",
        "Which value did the user set for `{reserved}` at {site}?",
        "How much does the `{decoy}` add-on cost per year?",
    ),
}
