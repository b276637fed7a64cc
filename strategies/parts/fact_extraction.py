"""Facts, extracted from messages by rules or by a model (for S8; design 002 says only that a model gives them)."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from functools import lru_cache

import msgspec

from ctxbench.metrics.language import Language, is_constraint, is_decision, regex, sentences, terms, words
from ctxbench.metrics.values import values
from ctxbench.scenarios.model import Message

from ..base import ModelError, Prompt, StrategyContext, data, texts
from .passages import passages

CONFIDENCE = {"preference": 0.9, "self": 0.9, "decision": 0.85, "constraint": 0.8, "value": 0.75, "name": 0.65}
"""Confidence by what makes a sentence a fact; the first reason that holds counts."""
BY_ASSISTANT, HEDGED = -0.15, -0.3  # corrections: the user knows better; "maybe", "I think", 可能
SENTENCES = 200  # most sentences of a message that are read: a pasted file states few facts

# Ours: 002 says that a model gives facts and confidences, and has no prompt.
PROMPTS = texts("facts_prompt")


def _any(name: str, form: str = "{}") -> re.Pattern[str]:
    """Return a pattern of all that `data/facts.toml` has under a name, in any language, in a form."""
    inside = [
        rf"\b(?:{'|'.join(patterns)})(?!\w)" if language == "en" else "|".join(patterns)
        for language, patterns in data("facts")[name].items()
    ]
    return regex(form.replace("{}", f"(?:{'|'.join(inside)})", 1), re.IGNORECASE | re.MULTILINE)


_PREFERENCE, _SELF, _HEDGE = _any("preference"), _any("self"), _any("hedge")
_COMMAND, _KEEP, _BESIDE = _any("command", r"\W*{}"), _any("keep", r"\W*{}"), _any("beside")
_CHANGED, _UPDATE, _STATE = _any("changed"), _any("update"), _any("state")
_SINGLE = [regex(pattern, re.IGNORECASE) for patterns in data("facts")["single"].values() for pattern in patterns]
# Text after a request for something to be done with it, or before one that points up.
_LINE, _MATERIAL = regex(r"[^\n]+\n?"), _any("material")
_BELOW = regex(
    r"[^\n:：]*[:：](?=\s|[^\x00-\x7f]|[\"'A-Za-z])"
    r"|[^\n]*(?:\b(?:this|these|following|below|into)\b|下面|以下|这段|这句|这封|这篇)[^\n]*\n"
)
_ABOVE = regex(r"\babove\b|上面|上述|以上|上文")
_QUOTED_LINES = regex(r"^[ \t]*(?:```|~~~).*?(?:^[ \t]*(?:```|~~~)|\Z)|^[ \t]*(?:[>$]|/\w+ )[^\n]*$", re.M | re.S)
_QUOTATION = regex(
    r"“[^”]{0,9999}”|„[^“”]{0,9999}[“”]|«[^»]{0,9999}»|「[^」]{0,9999}」|『[^』]{0,9999}』|\"[^\"]{0,9999}\"|(?<!\w)'(?:[^'\n]|(?<=\w)'(?=\w)){1,9999}'(?!\w)"
)
_LONGEST_NAME = 2  # words of a quotation that may be a name or a value, and not what somebody else said
_CLAUSE_END = regex(r"(?:[;，；]|,(?!\d)|\s(?:and|but)\b|而且|并且)+\s*")
_MASK = "\ufffc"
_FEWEST_WORDS = 3


class StatedFact(msgspec.Struct, frozen=True, gc=False):
    """A fact that a message states, and its confidence."""

    text: str
    confidence: float  # 0 to 1
    source: str  # id of the message that states it

    @property
    def words(self) -> Sequence[str]:
        return words(self.text)

    speaker: str = ""  # role of who says it, if rules found it

    @property
    def about(self) -> str:
        """Subject of the fact, if a later one about the same is an update of it, else empty.

        That is what one has one of (a home, a job, a name), a taste, or of a state with numbers or dates the words
        without these and without words of change, if at least three are left.
        """
        text = self.text.replace("’", "'")
        for pattern in _SINGLE if self.speaker else ():
            if (match := pattern.search(text)) is not None:
                kind, words_of_it = next((name, said) for name, said in match.groupdict().items() if said)
                name = kind if kind in ("live", "work", "name", "age") else f"{kind} {' '.join(terms(words_of_it))}"
                return f"{self.speaker}: {name}"
        text = _UPDATE.sub(" ", _CHANGED.sub(lambda match: " is " if match.group().isascii() else "是", text))
        if _STATE.search(text) is None:
            return ""
        spellings = [value.text for value in values(text) if value.kind in ("number", "date")]
        for spelling in spellings:
            text = text.replace(spelling, " ")
        rest = words(text)
        return " ".join(rest) if spellings and len(rest) >= _FEWEST_WORDS - (not text.isascii()) else ""


def is_preference(text: str) -> bool:
    """Return whether the text says what somebody likes, or what is always or never to be done."""
    return _PREFERENCE.search(text) is not None


def extract_by_rules(
    message: Message, most: int, most_tokens: int, count: Callable[[str], int]
) -> tuple[StatedFact, ...]:
    """Return the facts that a message states: at most `most`, the surest, in the order of the message.

    A fact is a sentence, not a question, of three words or more, in which the user says something of himself or a
    preference, or anyone a decision, a constraint, or a number, date, identifier, path, address or name. What a user
    quotes, gives to be translated or the like, or commands is none. It is cut to `most_tokens`.
    """
    return tuple(
        StatedFact(passages(sentence, most_tokens, 1, count)[0], confidence, message.id, message.role)
        for sentence, confidence in _surest(message.text, message.role, most)
    )


@lru_cache(1 << 12)  # every variant of a strategy reads the same messages
def _surest(text: str, role: str, most: int) -> tuple[tuple[str, float], ...]:
    facts = list[tuple[str, float]]()
    text, quotations = (text.replace(_MASK, " "), list[str]())
    if role == "user":
        text, quotations = _own(text)
    stated = list[str]()
    for sentence in sentences(text)[:SENTENCES]:
        # A user's sentence may say several things of which one has one.
        several = role == "user" and sum(pattern.search(sentence) is not None for pattern in _SINGLE) > 1
        stated += filter(None, _CLAUSE_END.split(sentence)) if several else [sentence]
    for sentence in stated:
        reason = _reason(role, sentence)
        for _ in range(sentence.count(_MASK)):
            sentence = sentence.replace(_MASK, quotations.pop(0), 1)
        if reason is None:
            continue
        confidence = CONFIDENCE[reason] + (BY_ASSISTANT if role == "assistant" else 0)
        facts.append((sentence, round(confidence + (HEDGED if _HEDGE.search(sentence) else 0), 2)))
    surest = sorted(range(len(facts)), key=lambda at: (-facts[at][1], at))[:most]
    return tuple(facts[at] for at in sorted(surest))


def _own(text: str) -> tuple[str, list[str]]:
    """Return what a user says himself: no quoted lines, code, texts to work on. Quotations are masked, and returned."""
    text = _QUOTED_LINES.sub("", text)
    # The first request of each line: a search for the whole pattern takes the square of a long line.
    asked = [(line, of) for line in _LINE.finditer(text) if (of := _MATERIAL.search(line.group())) is not None]
    above = (line.start() for line, of in asked if _ABOVE.search(line.group(), of.end()))
    below = (line.start() + end.end() for line, of in asked if (end := _BELOW.match(line.group(), of.end())))
    if (start := next(above, None)) is not None:
        text = text[start:]
    elif (stop := next(below, None)) is not None:
        text = text[:stop]
    quotations: list[str] = []

    def mask(match: re.Match[str]) -> str:
        if len(words(match.group())) <= _LONGEST_NAME:
            return match.group()
        quotations.append(match.group())
        return _MASK

    return _QUOTATION.sub(mask, text), quotations


def _reason(role: str, sentence: str) -> str | None:
    """Return what makes a sentence a fact, one of `CONFIDENCE`; None if it is none."""
    if sentence.endswith(("?", "？")) or len(words(sentence[:200])) < _FEWEST_WORDS - (not sentence.isascii()):
        return None
    if role == "user":
        if _COMMAND.match(sentence) and not _KEEP.match(sentence) and not _BESIDE.search(sentence):
            return None
        if is_preference(sentence):
            return "preference"
        if _SELF.search(sentence) or any(pattern.search(sentence) for pattern in _SINGLE):
            return "self"
    if is_decision(sentence):
        return "decision"
    if is_constraint(sentence):
        return "constraint"
    kinds = {value.kind for value in values(sentence)}
    return "value" if kinds - {"name"} else "name" if kinds else None


def extract_by_model(
    services: StrategyContext, messages: Sequence[Message], language: Language, max_tokens: int, model: str
) -> list[StatedFact]:
    """Return the facts that a model extracts from the messages.

    Text around the JSON list of its reply, and items that are no facts, are skipped. A fact without a usable confidence
    gets 0.5, one without a usable source is of the last message. Raises ModelError, also for a reply without a list,
    and for a list without facts.
    """
    lines = tuple(f"{number}. {message.role}: {message.text}" for number, message in enumerate(messages, 1))
    reply = services.complete(Prompt(PROMPTS[language], lines, max_tokens, tuple(messages), 0.0, model))
    try:
        items = msgspec.json.decode(reply[reply.index("[") : reply.rindex("]") + 1])
    except (ValueError, msgspec.DecodeError, RecursionError):
        raise ModelError("the answer is no JSON list") from None
    facts = list[StatedFact]()
    for item in items:
        text = item.get("fact") if isinstance(item, dict) else None
        if not isinstance(text, str) or not text.strip():
            continue
        said, source = item.get("confidence"), item.get("source")
        sure = float(said) if isinstance(said, (int, float)) and not isinstance(said, bool) else 0.5
        sure = min(1.0, max(0.0, sure if math.isfinite(sure) else 0.5))
        place = source if isinstance(source, int) and 1 <= source <= len(messages) else len(messages)
        facts.append(StatedFact(" ".join(text.split()), sure, messages[place - 1].id))
    if items and not facts:
        raise ModelError("no item of the answer is a fact")
    return facts
