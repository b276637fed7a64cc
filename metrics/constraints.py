"""Constraint recall: are the rules that system and user have stated still in the context of each later call?

A **constraint** is a sentence of a system or user message that states a standing rule. Cues (`data/constraints.toml`)
tell: a clause that begins as an order ("never …", 不要), what speaks of all that comes ("from now on") or binds the one
who is spoken to ("you must"); in a system message or a file of instructions (CLAUDE.md) any modal verb or imperative;
and any item of a list announced as rules. In a language other than English and Chinese none is found, which is missing
and not 0. Questions, quotes, code, tables, headings, the content of elements such as `<document>`, what users say of
themselves or of the past, and what tools say are none.

A constraint is **retained** if a message that is sent has it word for word, but for white space and list marks.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import pairwise

import numpy as np

from ctxbench.scenarios.model import Conversation, Message

from .grounding import said
from .language import FENCE, HAN, SHORT, either, sentences, unread, word_lists, written_in
from .measure import Stretches
from .values import NOTHING, Ints, Lines, finder, places

LONGEST = 400  # characters of the longest sentence that can be a constraint
FEWEST = 3  # words, or Han characters, of the shortest one

_LISTS = word_lists(__package__, "constraints")
_EN, _ZH = _LISTS["en"], _LISTS["zh"]

_MARK = re.compile(
    r"\A(?:(?:[-*•·–—]+|\(?\d{1,3}(?:\.\d{1,3})*[.)、]?|\(?[A-Za-z][.)]|\[[ xX]?\])\s+|\d{1,3}[、.．]\s*)"
)
_QUOTED = re.compile(r"\"[^\"]*\"|“[^”]*”|「[^」]*」|『[^』]*』|《[^》]*》|`[^`]*`")
_EMPHASIS = re.compile(r"\*{1,3}|(?<!\w)_{1,2}|_{1,2}(?!\w)")
_MARKED = re.compile(r"[\"“「『《`*_]")  # a set of characters, which is found in a tenth of the time
_ELEMENT = re.compile(rf"\s*<(/?)({either(_LISTS['material'])})(?:\s[^>]*)?>", re.IGNORECASE)
_RULE_TAG = re.compile(rf"</?(?:{either(_LISTS['rule_tags'])})\b[^>]{{0,{LONGEST}}}>", re.IGNORECASE)
_FILE = re.compile(either(_LISTS["files"]))
_ANNOUNCES = re.compile(rf"(?:{either(_LISTS['announces'])})[^.!?。]*[:：]?\s*$")
# A line of code, of a table, of a diff or of a file with line numbers; a heading; a quoted line.
_NO_PROSE = re.compile(r"\s*(?:[<{}|$>#@]|//|\d+[:|]|[\w.]+ = )|.*[;{}\[(|\\]\s*$")
_WORDS = re.compile(rf"[{HAN}]|[^\W\d_]+")

_OPENS = r"(?:^|[:;,.!(—–]\s*|\s-\s|\b(?:and|but|then|please|also|so|or)\s+)(?:please\s+|important\s*[:!]\s*)?"
_EN_ORDER = re.compile(rf"{_OPENS}(?:{either(_EN['orders'])})\s+(?!(?:{either(_EN['no_orders'])})\b)[a-z]")
_EN_SAYS = re.compile(rf"\b(?:{either(_EN['standing'] + _EN['bound'])})\b")
_EN_SYSTEM = re.compile(
    rf"\b(?:{either(_EN['system'])})\b"
    rf"|(?:^|[;:]\s+|^(?:{either(_EN['conditions'])})\b[^,]*,\s+)(?:{either(_EN['verbs'].split())})\s+\S"
)
_EN_NOT = re.compile(rf"\b(?:{either(_EN['not_bound'])})\b")
_EN_OWN = re.compile(rf"(?:and |but |so |well,? |yes,? |no,? |oh,? )?(?:{either(_EN['own'])})\b")
_EN_WISH = re.compile(rf"\b(?:{either(_EN['wishes'])})\b")
_ZH_ORDER = re.compile(rf"(?:^|[，；：、,;:（(。]\s*|并|而且?|请|也|都|则|但)(?:{either(_ZH['orders'])})")
_ZH_SAYS = re.compile(either(_ZH["standing"] + _ZH["bound"]))
_ZH_SYSTEM = re.compile(either(_ZH["system"]))
_ZH_NOT = re.compile(either(_ZH["not_bound"]))


@dataclass(frozen=True, slots=True)
class Constraints:
    """The constraints of one conversation, in the order in which they are first stated."""

    rules: list[str]
    by_step: Ints  # how many had been stated before each model call; -1 in a language that is not read
    size: int  # number of messages of the recording
    occurrences: tuple[Ints, Ints]
    """Constraint and message, by their numbers, wherever a recorded message has a constraint word for word."""
    find: Callable[[str], set[int]]  # tells which of them a text has


def constraints(conversation: Conversation) -> Constraints:
    """Return all constraints of a conversation, in one pass over its text."""
    stated_at: dict[str, int] = {}
    for at, message in enumerate(conversation.messages):
        for rule in rules_of(message):
            stated_at.setdefault(rule, at)
    # Both are in the order in which the rules were first said. So places ascend, and the rules said before a call are
    # those with the lowest numbers: that is what `by_step` counts and `retained_constraints` compares with.
    places_stated, rules = list(stated_at.values()), list(stated_at)
    find = cache(finder([(rule,) for rule in rules], _spaced))
    spoken = (message.text[:SHORT] for message in conversation.messages if message.role in ("user", "system"))
    is_read = rules or not unread(map(written_in, spoken))
    return Constraints(
        rules,
        np.array([bisect_left(places_stated, at) if is_read else -1 for at in conversation.calls()], np.int64),
        len(conversation.messages),
        places(find, map(said, conversation.messages) if rules else ()),
        find,
    )


def retained_constraints(stated: Constraints, sent: Stretches, written: Lines = NOTHING) -> Ints:
    """Return how many of the constraints stated before each call its context retains, by what is sent (`stretches`)."""
    rule, place = stated.occurrences
    if stated.rules:
        among, line = places(stated.find, written.different)
        broken = _broken(stated.rules, written)
        more, whole = places(stated.find, (written.texts[at] for at in broken))
        rule = np.concatenate([rule, among, more])
        texts = np.array(broken, np.int64)[whole]
        place = np.concatenate([place, stated.size + len(written.texts) + line, stated.size + texts])
    # A tool may have said it before the user did: it is no constraint yet.
    stated_from = np.searchsorted(stated.by_step, np.arange(len(stated.rules)), "right")
    return sent.having(rule, place).count(stated_from)


def _broken(rules: Sequence[str], texts: Lines) -> list[int]:
    """Return the texts that may have a rule over the end of a line: one of its words ends a line, the next begins one.

    Its first word may be the end of a longer one, and its last the start of one.
    """
    pairs = {pair for rule in rules for pair in pairwise(rule.split(" "))}
    before, behind = (tuple({pair[side] for pair in pairs}) for side in (0, 1))
    words = [(line.split(None, 1)[0], line.rsplit(None, 1)[-1]) if line.strip() else None for line in texts.different]
    is_text = np.array([word is not None for word in words], bool)
    ends = np.array([word is not None and word[1].endswith(before) for word in words], bool)
    begins = np.array([word is not None and word[0].startswith(behind) for word in words], bool)
    kept = np.flatnonzero(is_text[texts.line])
    line, text = texts.line[kept], texts.text[kept]
    at = np.flatnonzero(ends[line[:-1]] & begins[line[1:]] & (text[:-1] == text[1:]))
    return sorted(set(text[at].tolist()))


def _spaced(text: str) -> str:
    """Return a text with one space wherever there is white space."""
    return " ".join(text.split())


def is_standing_rule(sentence: str, role: str) -> bool:
    """Return whether a sentence of a system or user message states a standing rule."""
    if len(sentence) > LONGEST:
        return False
    bare = (_EMPHASIS.sub("", _QUOTED.sub("…", sentence)) if _MARKED.search(sentence) else sentence).strip()
    if bare.endswith(("?", "？", "吗。", ":", "：")) or len(_WORDS.findall(bare)) < FEWEST:
        return False
    if not bare.isascii():
        rest = _ZH_NOT.sub("…", bare)
        if any(cue.search(rest) for cue in (_ZH_ORDER, _ZH_SAYS, *[_ZH_SYSTEM] * (role == "system"))):
            return True
    lower = bare.lower()
    if role == "system":
        return any(cue.search(lower) for cue in (_EN_SYSTEM, _EN_ORDER, _EN_SAYS))
    if _EN_OWN.match(lower) and not _EN_WISH.search(lower):
        return False
    rest = _EN_NOT.sub("…", lower)
    return any(cue.search(rest) for cue in (_EN_ORDER, _EN_SAYS))


def rules_of(message: Message) -> tuple[str, ...]:
    """Return the standing rules of a system or user message in order, without list marks, white space as one space."""
    return _rules_in(message.text, message.role) if message.role in ("system", "user") else ()


# Conversations of one agent begin with the same system message.
@lru_cache(256)
def _rules_in(text: str, role: str) -> tuple[str, ...]:
    return tuple(
        rule
        for line, reading in _prose(text, role)
        for rule in map(unmarked, sentences(line))
        if (_listed(rule) if reading == "listed" else is_standing_rule(rule, reading))
    )


def _listed(rule: str) -> bool:
    """Return whether an item of a list of rules is one: no question, and not a single word."""
    return len(rule) <= LONGEST and not rule.endswith(("?", "？", ":", "：")) and len(_WORDS.findall(rule)) > 1


def unmarked(sentence: str) -> str:
    """Return a sentence without the mark of its list item, white space as one space."""
    return _MARK.sub("", _spaced(sentence), count=1)


def _prose(text: str, role: str) -> Iterator[tuple[str, str]]:
    """Yield the lines of a text that are neither code, quotes nor material in an element of XML, and how each is read.

    What stands in a file of instructions (CLAUDE.md, AGENTS.md) is read like a system message, until its element ends;
    items under a heading that announces rules are `listed`.
    """
    fenced, element, reading, announced = False, "", role, False
    for raw in text.splitlines():
        if FENCE.match(raw):
            fenced = not fenced
            continue
        if _FILE.search(raw):
            reading = "system"
        elif raw.startswith("</"):
            reading = role
        line = _RULE_TAG.sub("", raw)
        if line.strip() and not _MARK.match(line.lstrip()):
            announced = len(line) <= LONGEST and _ANNOUNCES.search(line.lower()) is not None
        tag = _ELEMENT.match(line)
        # A tag that is not closed is a placeholder in a sentence, and no element.
        if tag and not tag[1] and not element and f"</{tag[2]}>" not in line and f"</{tag[2]}>" in text:
            element = tag[2]
        elif element and f"</{element}>" in line:
            element = ""
        elif not (fenced or element or _NO_PROSE.match(line)):
            is_item = raw.lstrip().startswith("<rule>") or (announced and _MARK.match(line.lstrip()))
            yield line, "listed" if is_item else reading
