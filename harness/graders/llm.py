"""The grader `llm`: a model reads the question, the accepted answers and the candidate, and gives a verdict as JSON."""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, TypeVar

import msgspec

from ctxbench.metrics.grading import Grade, GradedItem, Kind
from ctxbench.metrics.language import sentences, terms, word_lists
from ctxbench.metrics.tokens import TokenCounter
from ctxbench.metrics.value import Missing
from ctxbench.scenarios.spec import spec
from ctxbench.strategies.base import ModelError

from ..models import Models, Reply, Unusable
from ..models.recorded import ModelRequest

T = TypeVar("T")
TOKENS = 300
"""The most tokens of a reply."""


@dataclass(frozen=True, slots=True)
class Llm:
    """The parameters of the grader `llm`, as written in a spec."""

    model: str = ""
    """With its parameters: `openai/qwen3(timeout=30)`. Empty = local."""
    variant: Variant = "strict"
    votes: int = 1
    """Odd: the majority decides."""
    temperature: float = 0.0
    longest: int = 8_000
    """Characters of one text that are shown."""
    prompt: str = ""
    """The digest of its prompts, to accept only these."""

    def __post_init__(self) -> None:
        if self.votes < 1 or self.votes % 2 == 0:
            raise ValueError(f"votes must be odd, so that there is a majority, not {self.votes}")
        if self.votes > 1 and not self.temperature:
            raise ValueError(f"{self.votes} votes at temperature 0 are all the same: give temperature=0.7")
        if not 0 <= self.temperature <= 2 or self.longest < 100:
            raise ValueError("temperature is from 0 to 2, longest is 100 characters or more")

    def digest(self) -> str:
        """Return a digest of the prompts of this variant, and of how texts are read."""
        return digest(*(prompt.full for prompt in rubrics(self.variant)), READ)


class LlmGrader:
    """Grades with a model. An item without a majority of readable verdicts is Missing."""

    def __init__(self, how: Llm, models: Models) -> None:
        """`how.model` is the full name of an available model."""
        self.how, self._models, self._counter = replace(how, prompt=how.digest()), models, TokenCounter()
        self.used = GraderUsage()

    @property
    def name(self) -> str:
        """`llm(model='…', variant='…', prompt='…')`."""
        return spec("llm", self.how)

    def grade(self, items: Sequence[GradedItem]) -> list[Grade | Missing]:
        """Return a grade for each item."""
        replies = ask(self._models, [self.requests(item) for item in items], self._counter, self.used)
        return [self._graded(replies_of_item) for replies_of_item in replies]

    def requests(self, item: GradedItem) -> list[ModelRequest]:
        """Return the requests for one item, a vote each."""
        how, prompt = self.how, rubric(item.kind, self.how.variant)
        text = whole(prompt, parts(item), how.longest)
        return [request(how.model, text, prompt, GraderVerdict, how.temperature, vote) for vote in range(how.votes)]

    def _graded(self, replies: Sequence[Reply | Missing]) -> Grade | Missing:
        votes = [reply if isinstance(reply, Missing) else read(reply.text, GraderVerdict) for reply in replies]
        verdicts = [vote for vote in votes if not isinstance(vote, Missing)]
        right = sum(verdict.verdict == "CORRECT" for verdict in verdicts)
        # The majority is of all votes, not of the readable ones: of three, two CORRECT decide beside a missing one, and
        # one CORRECT, one WRONG and a missing one decide nothing.
        needed = self.how.votes // 2 + 1
        if max(right, len(verdicts) - right) < needed:
            missing = [vote for vote in votes if isinstance(vote, Missing)]
            return next((vote for vote in missing if vote.why == "failed"), missing[0])
        correct = right >= needed
        reason = next(verdict.reason for verdict in verdicts if (verdict.verdict == "CORRECT") == correct)
        raw = "\n".join(reply.text for reply in replies if not isinstance(reply, Missing))
        return Grade(correct, right / len(verdicts), reason, raw)


def whole(prompt: GraderPrompt, texts: Mapping[str, str | Sequence[str]], longest: int) -> str:
    """Return the whole prompt: instructions, the data, and the form of the reply after it."""
    data, mark = fenced(texts, longest)
    return f"{prompt.text}\n\nThe mark is {mark}.\n\n{data}\n\nThe data ends here. {prompt.form}"


def request(
    model: str, text: str, prompt: GraderPrompt, kind: type[msgspec.Struct], temperature: float = 0.0, vote: int = 0
) -> ModelRequest:
    """Return the request for one verdict."""
    return ModelRequest(model, text, temperature, TOKENS, schema=schema_of(kind), vote=vote, prompt=prompt.full)


def ask(
    models: Models, groups: Sequence[Sequence[ModelRequest]], counter: TokenCounter, used: GraderUsage
) -> list[list[Reply | Missing]]:
    """Return the reply to each request of each group, or why there is none. The same request is made once.

    A provider is sent several requests at once, a model in this process one after the other.
    """
    # Two items may ask the same, as strategies often give the same answer; the cassette would be asked twice and the
    # price counted twice.
    distinct = {request.canonical(): request for group in groups for request in group}

    def one(request: ModelRequest) -> tuple[Reply | None, Reply | Missing]:
        """Return what is charged, and the reply."""
        try:
            reply = models.chat(request, counter)
            return reply, reply
        except Unusable as error:  # it has to be paid for all the same
            return error.reply, Missing("unusable", str(error))
        except ModelError as error:
            return None, Missing("failed", str(error))

    at_once = min((models.settings.access_of(each.model).parallel for each in distinct.values()), default=1)
    answers = dict(zip(distinct, _mapped(one, list(distinct.values()), at_once), strict=True))
    for charged, _ in answers.values():
        if charged is not None:
            used.add(charged.input_tokens, charged.output_tokens, charged.cost)
    return [[answers[request.canonical()][1] for request in group] for group in groups]


def _mapped(one: Callable[[ModelRequest], T], requests: Sequence[ModelRequest], at_once: int) -> list[T]:
    if not requests:
        return []
    first = one(requests[0])  # alone: it opens the client that all share
    pool = ThreadPoolExecutor(at_once)
    try:
        return [first, *pool.map(one, requests[1:])]
    finally:
        pool.shutdown(cancel_futures=True)  # when the user stops it: no more calls


Variant = Literal["strict", "lenient"]

PROMPTS = word_lists(__package__, "prompts")
"""Instructions and rubrics of `data/prompts.toml`. Their digests are part of the names of grades."""
FORM: str = PROMPTS["llm"]["form"]


def rubric(kind: Kind, variant: Variant) -> GraderPrompt:
    """Return the prompt for a kind of question."""
    llm = PROMPTS["llm"]
    rule = llm["rules"][kind][variant].replace("{same}", llm["same"])
    return GraderPrompt(f"llm-{variant}-{kind}", llm["frame"].replace("{rule}", rule), FORM)


def rubrics(variant: Variant) -> tuple[GraderPrompt, ...]:
    """Return the prompts for all kinds."""
    return tuple(rubric(kind, variant) for kind in PROMPTS["llm"]["rules"])


def parts(item: GradedItem) -> dict[str, str | tuple[str, ...]]:
    """Return the texts of an item that a grader is shown, by name."""
    return {
        "question": item.question,
        "evidence": item.evidence,
        "rubric": item.rubric,
        "accepted answer": item.accepted,
        "candidate": item.candidate,
    }


_DIGITS = 12
_MARK = 16


class GraderPrompt(msgspec.Struct, frozen=True):
    """Instructions, and the form of the reply."""

    name: str
    text: str
    form: str = ""

    @property
    def digest(self) -> str:
        """Digest of instructions and form."""
        return digest(self.text, self.form)

    @property
    def full(self) -> str:
        """NAME@DIGEST."""
        return f"{self.name}@{self.digest}"


def digest(*texts: str) -> str:
    """Return twelve hexadecimal digits of some texts: others for any change in them."""
    return hashlib.sha256("\0".join(texts).encode("utf-8", "replace")).hexdigest()[:_DIGITS]


def fenced(parts: Mapping[str, str | Sequence[str]], most: int) -> tuple[str, str]:
    """Return texts as data between marks that none of them can write, and the mark.

    Each text is written as a person sees it, at most `most` characters. The mark is a digest of all of them: a text
    that contained it would have to contain its own digest. The same texts have the same mark, so the same request.
    """
    shown_texts = [(name, cut(seen(text), most)) for name, texts in parts.items() for text in _all(texts)]
    mark = _mark([text for _, text in shown_texts])
    return "\n\n".join(f"<<{mark} {name}\n{text}\n{mark}>>" for name, text in shown_texts), mark


def _all(texts: str | Sequence[str]) -> Sequence[str]:
    return (texts,) if isinstance(texts, str) else texts


def _mark(texts: Sequence[str]) -> str:
    # The loop ends at once in practice: a text would have to contain 64 bits of its own digest.
    salt = 0
    while True:
        mark = hashlib.sha256("\0".join((str(salt), *texts)).encode("utf-8", "replace")).hexdigest()[:_MARK]
        if not any(mark in text for text in texts):
            return mark
        salt += 1


_SHOWN = 80


class GraderVerdict(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The verdict on one candidate, as the model replies."""

    verdict: Literal["CORRECT", "WRONG"]
    reason: str = ""


S = TypeVar("S", bound=msgspec.Struct)


def schema_of(kind: type[msgspec.Struct]) -> dict[str, Any]:
    """Return the JSON schema of a reply: every field, the reason before the verdict that follows from it."""
    properties = msgspec.json.schema(kind)["$defs"][kind.__name__]["properties"]
    names = sorted(properties, key=lambda name: name != "reason")
    shown = {name: {key: value for key, value in properties[name].items() if key != "default"} for name in names}
    return {"type": "object", "properties": shown, "required": names, "additionalProperties": False}


def read(text: str, kind: type[T]) -> T | Missing:
    """Parse a reply. Prose, broken JSON, two objects, a repeated field, other fields or words are Missing, with the
    reason."""
    inner = _unfenced(text)
    try:
        reply = msgspec.json.decode(inner, type=kind)
        json.loads(inner, object_pairs_hook=_once)  # msgspec takes the last of two fields of one name
    except (ValueError, RecursionError) as error:  # msgspec's errors are of this kind
        return Missing("unusable", f"the grader's reply is no verdict: {_why(inner, error)}")
    return reply


def _unfenced(text: str) -> str:
    """Return what stands in a block of code, if a reply is one block and nothing else."""
    # No pattern: one with white space on both sides of the lines took minutes for a reply of 8,000 line breaks.
    fence = "```"
    whole = text.strip()
    if len(whole) < 2 * len(fence) or not (whole.startswith(fence) and whole.endswith(fence)):
        return text
    first, _, rest = whole[len(fence) : -len(fence)].partition("\n")
    inner, newline, last = rest.rpartition("\n")
    return inner if newline and first.strip() in ("", "json") and not last.strip() else text


def _why(text: str, error: Exception) -> str:
    if not text.strip():
        return "it is empty"
    what = str(error) if text.lstrip().startswith("{") else "it is no JSON object"
    return f"{what}: {' '.join(text.split())[:_SHOWN]!r}"


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    names = [name for name, _ in pairs]
    if len(set(names)) < len(names):
        raise ValueError("a field stands in it twice")
    return dict(pairs)


READ = "1"
"""Version of how texts are read: grades of two versions do not compare."""

# Control and format characters, fillers, variation selectors, tags, private use; not tab and newline.
_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x84\x86-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e"
    "\u2060-\u206f\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\ue000-\uf8ff\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff\U000f0000-\U0010ffff]+"
)
_LINES = re.compile("\r\n?|[\x85\u2028\u2029]")
# Full-width letters and digits, and those of mathematics: an alphabet drawn in another style.
_STYLED = re.compile("[\uff10-\uff19\uff21-\uff3a\uff41-\uff5a\U0001d400-\U0001d7ff]+")
_WORD = re.compile("[A-Za-z\u00c0-\u024f\u0370-\u052f]+")
_LATIN = re.compile("[A-Za-z]")
_LOOKALIKES = str.maketrans(
    "аеорсухіјѕһԁԛԝкмтнвАВЕКМНОРСТУХІЈЅαορυνικτΑΒΕΖΗΙΚΜΝΟΡΤΥΧ",
    "aeopcyxijshdqwkmtnbABEKMHOPCTYXIJSaopuviktABEZHIKMNOPTYX",
)
_SURROGATES = re.compile("[\ud800-\udfff]")
_TAG = re.compile(r"<(?=[^\s\d=<>‹-])([^<>\n]{0,80})>?")
_BRACKET = re.compile(r"\[(/?[A-Z][A-Z_]{2,30})\]")
_MARKS = re.compile("[‹›]")
_BARS = re.compile(r"\|>")


def seen(text: str) -> str:
    """Return the text as a person sees it."""
    if not (text.isascii() and text.isprintable()):
        text = _LINES.sub("\n", _SURROGATES.sub("\ufffd", text))
        text = _UNSEEN.sub("", text)
        text = _STYLED.sub(lambda match: unicodedata.normalize("NFKC", match.group()), text)
        text = _WORD.sub(lambda match: _plain(match.group()), text)
    return _inert(text)


def _plain(word: str) -> str:
    # A word of Cyrillic or Greek letters alone is Russian or Greek; only a mixed one is a disguise.
    return word.translate(_LOOKALIKES) if _LATIN.search(word) else word


def _inert(text: str) -> str:
    """Return the text without what a tokenizer or chat template takes for a mark of its own: `<|im_end|>`, `[INST]`,
    `</s>`."""
    text = _TAG.sub(lambda match: f"‹{match.group(1)}›" if match.group().endswith(">") else f"‹{match.group(1)}", text)
    return _BARS.sub("|›", _BRACKET.sub(r"(\1)", text))


def one_line(text: str) -> str:
    """Return the text on one line, its white space single."""
    return " ".join(text.split())


def on_topic(text: str, *topics: str) -> str:
    """Return the sentences that share a word with the topics, or all of them if none does.

    As a rule a sentence of an answer does, and one that speaks to the grader or fills space does not.
    """
    topic_terms = {term for topic in topics for term in terms(topic)}
    parts = sentences(_MARKS.sub("\n", text))
    relevant = [part for part in parts if not topic_terms.isdisjoint(terms(part))]
    return " ".join(relevant or parts)


def cut(text: str, most: int) -> str:
    """Return at most about `most` characters: the middle of a longer text is left out, with a note that says so."""
    if len(text) <= most:
        return text
    half = most // 2
    return f"{text[:half]} [… {len(text) - 2 * half:,} characters are left out here …] {text[-half:]}"


@dataclass(slots=True)
class GraderUsage:
    """The usage of all model calls of a grader, replayed or not, at today's prices: the same in every run."""

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    dollars: float = 0.0
    unpriced: int = 0
    """Calls whose price is not known."""

    def add(self, input_tokens: int, output_tokens: int = 0, cost: float | None = 0.0) -> None:
        """Count one more answered call."""
        self.calls += 1
        self.input_tokens += input_tokens
        self.output_tokens += output_tokens
        self.dollars += cost or 0.0
        self.unpriced += cost is None

    def take(self, other: GraderUsage) -> None:
        """Add the usage of another grader."""
        for part in fields(self):
            setattr(self, part.name, getattr(self, part.name) + getattr(other, part.name))


Side = Literal["first", "second"]

PAIRWISE = GraderPrompt("llm-pairwise", PROMPTS["pairwise"]["instructions"], PROMPTS["pairwise"]["form"])


class Better(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The reply of a model that compared two answers."""

    better: Literal["FIRST", "SECOND", "TIE"]
    reason: str = ""


class Preference(msgspec.Struct, frozen=True):
    """The better answer of one pair."""

    better: Literal["first", "second", "tie"]
    """As the pair was given, however it was shown. A tie where both orders were shown and disagree."""
    shown_first: tuple[Side, ...]
    """The answer that was shown first, in each of the calls."""
    reason: str = ""
    raw: str = ""


class Pairwise:
    """Compares two answers with a model. The order of a pair depends on the pair and the seed alone."""

    def __init__(self, model: str, models: Models, *, seed: int = 0, both: bool = False, longest: int = 8_000) -> None:
        """`both` shows each pair in both orders; `longest` is the number of characters of one text that are shown."""
        self._model, self._models, self._seed, self._both, self._longest = model, models, seed, both, longest
        self.used = GraderUsage()

    @property
    def name(self) -> str:
        """The name, with everything that the comparisons depend on."""
        return f"pairwise(model={self._model!r}, seed={self._seed}, both={self._both}, prompt={PAIRWISE.digest!r})"

    def compare(self, pairs: Sequence[tuple[GradedItem, str]]) -> list[Preference | Missing]:
        """Return the preference for each pair: an item, whose candidate is the first answer, and another candidate."""
        orders = [self._orders(item, other) for item, other in pairs]
        requests = [
            [request(self._model, self._text(item, other, side), PAIRWISE, Better) for side in order]
            for (item, other), order in zip(pairs, orders, strict=True)
        ]
        replies = ask(self._models, requests, TokenCounter(), self.used)
        return [_preference(replies_of_pair, order) for replies_of_pair, order in zip(replies, orders, strict=True)]

    def _orders(self, item: GradedItem, other: str) -> tuple[Side, ...]:
        text = "\0".join((str(self._seed), item.id, item.question, item.candidate, other))
        odd = hashlib.sha256(text.encode("utf-8", "replace")).digest()[0] % 2
        drawn: tuple[Side, Side] = ("second", "first") if odd else ("first", "second")
        return drawn if self._both else drawn[:1]

    def _text(self, item: GradedItem, other: str, first: Side) -> str:
        shown = (item.candidate, other) if first == "first" else (other, item.candidate)
        texts = parts(item)
        del texts["candidate"]
        return whole(PAIRWISE, {**texts, "first answer": shown[0], "second answer": shown[1]}, self._longest)


def _preference(replies: Sequence[Reply | Missing], order: tuple[Side, ...]) -> Preference | Missing:
    replies_read = [reply if isinstance(reply, Missing) else read(reply.text, Better) for reply in replies]
    preferences = [reply for reply in replies_read if not isinstance(reply, Missing)]
    if len(preferences) < len(replies_read):
        return next(reply for reply in replies_read if isinstance(reply, Missing))
    sides = {_side(preference, first) for preference, first in zip(preferences, order, strict=True)}
    raw = "\n".join(reply.text for reply in replies if not isinstance(reply, Missing))
    return Preference(sides.pop() if len(sides) == 1 else "tie", order, preferences[0].reason, raw)


def _side(reply: Better, first: Side) -> Side | Literal["tie"]:
    """Return the answer that the reply prefers, when `first` was shown first."""
    if reply.better == "TIE":
        return "tie"
    return first if reply.better == "FIRST" else "second" if first == "first" else "first"
