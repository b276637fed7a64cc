"""docs/decisions.md of the invented service."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from ..wording import one, say
from .source import article
from .words import ROLES
from .world import World

_PARAGRAPHS = (
    "«We looked at|There were» «two|three|four» ways to $verb a $thing«; this one was the cheapest to undo|, none of "
    "them without a catch|». «$who|The team» «preferred|argued for» the $role «because|since» it "
    "«keeps $text out of the "
    "$other|needs no second look at the $other|was there already».",
    "«Numbers|What we measured»: $n of $m ${thing}s were $state «after a week|in the spring»«, most of "
    "them for want of "
    "$text|, which is fewer than feared|». «That is|This was» «enough|not enough» to «justify|rule out»"
    " a $other of its "
    "own.",
    "«The price|What it costs us»: «whoever wants|everyone who needs» $num «has to|must» ask the "
    "$role«, which adds $n ms "
    "on a bad day|». «We accept that.|$who will look at it again after $m more ${thing}s.|Nobody objected.»",
    "«Rejected|Not taken»: «a table of its own for|sharing the lock with|copying $num into» the $other. «It would have "
    "tied|Experience with $ticket says that this ties» the $thing to the $other«, and the audit would ask why|».",
    "«To be undone|Review this» when «a $thing can be $state without $text|the $other side stops "
    "sending $num|more than "
    "$n partners $verb at once».",
)


def old_decision(world: World, number: int, when: datetime) -> str:
    """A decision taken before the conversation began."""
    rng, domain = world.rng, world.domain
    thing, other = (name.replace("_", " ") for name, _ in rng.sample(domain.things, 2))
    facts = {
        "thing": thing,
        "other": other,
        "role": one(rng, ROLES)[0],
        "verb": one(rng, domain.verbs).replace("_", " "),
        "num": one(rng, domain.numbers),
        "text": one(rng, domain.texts),
        "state": one(rng, domain.states),
        "who": world.people[world.person()][1],
        "ticket": f"{world.prefix}-{100 + int(rng.random() * 800)}",
        "n": str(3 + int(rng.random() * 60)),
        "m": str(70 + int(rng.random() * 800)),
    }
    title = say(rng, "«One|A single|No second» $role for «every $thing|$thing and $other»", facts)
    paragraphs = [say(rng, form, facts) for form in rng.sample(_PARAGRAPHS, 2 + int(rng.random() * 2))]
    return article(f"## D-{number:03d} {title} ({when:%Y-%m-%d})\n\n" + "\n\n".join(paragraphs) + "\n")


def decisions_page(package: str, entries: Sequence[str]) -> str:
    """The file: the last fourteen decisions; older ones are said to be elsewhere."""
    head = f"# Decisions of {package}\n\nNewest last. Older ones are in `docs/decisions-archive.md`.\n"
    return "\n".join([head, *entries[-14:], "<!-- next -->\n"])
