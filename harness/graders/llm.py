"""Grade with a model: `llm`, which gives a verdict, and `logit`, the next token of a local model.

The model of `llm` reads the question, the accepted answers and the candidate, and gives a verdict as JSON. That of
`logit` reads an item after some examples that end in Yes or No; the score is logit(" Yes") - logit(" No") of the next
token. Nothing is sampled and nothing is parsed: the same item has the same bits. Of several accepted answers, each read
by itself, the best counts. Every text is put on one line, so that none can start an example of its own.
docs/decisions/0025-model-graders.md says why this prompt, with figures.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

import msgspec

from ctxbench.metrics.grading import Grade, GradedItem, Kind
from ctxbench.metrics.language import sentences, terms, word_lists
from ctxbench.metrics.tokens import TokenCounter
from ctxbench.metrics.value import Missing
from ctxbench.scenarios.spec import spec
from ctxbench.strategies.base import ModelError

from ..models import Models, Reply, Unusable
from ..models.recorded import Choice, ModelRequest, at_once
from .profiles import GraderUsage

TOKENS = 300  # the most tokens of a reply
PROMPTS = word_lists(__package__, "prompts")
"""Instructions and rubrics of `data/prompts.toml`. Their digests are part of the names of grades."""
FORM: str = PROMPTS["llm"]["form"]
READ = "1"  # version of how texts are read: grades of two versions do not compare

Variant = Literal["strict", "lenient"]
Length = Annotated[int, msgspec.Meta(ge=100)]  # characters of one text that are shown


def digest(*texts: str) -> str:
    """Return twelve hexadecimal digits of some texts: others for any change in them."""
    return hashlib.sha256("\0".join(texts).encode("utf-8", "replace")).hexdigest()[:12]


def rubric(kind: Kind, variant: Variant) -> tuple[str, str]:
    """Return the instructions for a kind of question, and the prompt's name with its digest: NAME@DIGEST."""
    llm = PROMPTS["llm"]
    rule = llm["rules"][kind][variant].replace("{same}", llm["same"])
    text = llm["frame"].replace("{rule}", rule)
    return text, f"llm-{variant}-{kind}@{digest(text, FORM)}"


@dataclass(frozen=True, slots=True)
class Llm:
    """The parameters of the grader `llm`, as written in a spec."""

    model: str = ""
    """With its parameters: `openai/qwen3(timeout=30)`. Empty = local."""
    variant: Variant = "strict"
    votes: int = 1  # odd: the majority decides
    temperature: Annotated[float, msgspec.Meta(ge=0, le=2)] = 0.0
    longest: Length = 8_000
    prompt: str = ""  # the digest of its prompts, to accept only these

    def __post_init__(self) -> None:
        if self.votes < 1 or self.votes % 2 == 0:
            raise ValueError(f"votes must be odd, so that there is a majority, not {self.votes}")
        if self.votes > 1 and not self.temperature:
            raise ValueError(f"{self.votes} votes at temperature 0 are all the same: give temperature=0.7")

    def digest(self) -> str:
        """Return a digest of the prompts of this variant, and of how texts are read."""
        return digest(*(rubric(kind, self.variant)[1] for kind in PROMPTS["llm"]["rules"]), READ)


class LlmGrader:
    """Grades with a model. An item without a majority of readable verdicts is Missing."""

    def __init__(self, how: Llm, models: Models) -> None:
        """`how.model` is the full name of an available model."""
        self.how, self._models, self._counter = replace(how, prompt=how.digest()), models, TokenCounter()
        self.name, self.used = spec("llm", self.how), GraderUsage()

    def grade(self, items: Sequence[GradedItem]) -> list[Grade | Missing]:
        """Return a grade for each item. The same request is made once, and charged once."""
        by_item = [self.requests(item) for item in items]
        # Two items may ask the same, as strategies often give the same answer.
        distinct = {request.canonical(): request for requests in by_item for request in requests}
        answers = at_once(self._ask, list(distinct.values()), self._models.settings.access_of(self.how.model).parallel)
        replies = dict(zip(distinct, answers, strict=True))
        for charged, _ in replies.values():
            if charged is not None:
                self.used.add(charged.input_tokens, charged.output_tokens, charged.cost)
        return [self._graded([replies[request.canonical()][1] for request in requests]) for requests in by_item]

    def requests(self, item: GradedItem) -> list[ModelRequest]:
        """Return the requests for one item, a vote each: instructions, the data, and the form of the reply after it."""
        how, (instructions, prompt) = self.how, rubric(item.kind, self.how.variant)
        texts = {name: getattr(item, name) for name in ("question", "evidence", "rubric")}
        texts |= {"accepted answer": item.accepted, "candidate": item.candidate}
        data, mark = fenced(texts, how.longest)
        text = f"{instructions}\n\nThe mark is {mark}.\n\n{data}\n\nThe data ends here. {FORM}"
        request = ModelRequest(how.model, text, how.temperature, TOKENS, schema=SCHEMA, prompt=prompt)
        return [msgspec.structs.replace(request, vote=vote) for vote in range(how.votes)]

    def _ask(self, request: ModelRequest) -> tuple[Reply | None, Reply | Missing]:
        """Return what is charged, and the reply, or why there is none."""
        try:
            reply = self._models.chat(request, self._counter)
        except Unusable as error:  # it has to be paid for all the same
            return error.reply, Missing("unusable", str(error))
        except ModelError as error:
            return None, Missing("failed", str(error))
        return reply, reply

    def _graded(self, replies: Sequence[Reply | Missing]) -> Grade | Missing:
        votes = [reply if isinstance(reply, Missing) else read(reply.text) for reply in replies]
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


class GraderVerdict(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The verdict on one candidate, as the model replies."""

    verdict: Literal["CORRECT", "WRONG"]
    reason: str = ""


SCHEMA = {
    "type": "object",
    # The reason before the verdict that follows from it.
    "properties": {"reason": {"type": "string"}, "verdict": {"enum": ["CORRECT", "WRONG"]}},
    "required": ["reason", "verdict"],
    "additionalProperties": False,
}
"""The JSON schema of a reply."""
_FENCE = "```"


def read(text: str) -> GraderVerdict | Missing:
    """Parse a reply. Prose, broken JSON, two objects, a repeated field, other fields or words are Missing."""
    whole = text.strip()
    # No pattern: one with white space on both sides of the lines took minutes for a reply of 8,000 line breaks.
    if len(whole) >= 2 * len(_FENCE) and whole.startswith(_FENCE) and whole.endswith(_FENCE):
        language, _, rest = whole[len(_FENCE) : -len(_FENCE)].partition("\n")
        inner, newline, last = rest.rpartition("\n")
        text = inner if newline and language.strip() in ("", "json") and not last.strip() else text

    def once(pairs: list[tuple[str, Any]]) -> None:
        if len(dict(pairs)) < len(pairs):
            raise ValueError("a field stands in it twice")

    try:
        verdict = msgspec.json.decode(text, type=GraderVerdict)
        json.loads(text, object_pairs_hook=once)  # msgspec takes the last of two fields of one name
    except (ValueError, RecursionError) as error:  # msgspec's errors are of this kind
        why = str(error) if text.lstrip().startswith("{") else "it is no JSON object"
        why = f"{why}: {' '.join(text.split())[:80]!r}" if text.strip() else "it is empty"
        return Missing("unusable", f"the grader's reply is no verdict: {why}")
    return verdict


def fenced(texts: Mapping[str, str | Sequence[str]], most: int) -> tuple[str, str]:
    """Return texts as data between marks that no text can contain, and the mark.

    Each text is written as a person sees it, at most `most` characters. The mark is a digest of all of them: a text
    that contained it would have to contain its own digest. The same texts have the same mark, so the same request.
    """
    shown = [
        (name, cut(seen(text), most))
        for name, several in texts.items()
        for text in ((several,) if isinstance(several, str) else several)
    ]
    salt, mark = 0, ""
    # The loop ends at once in practice: a text would have to contain 64 bits of its own digest.
    while not mark or any(mark in text for _, text in shown):
        digits = "\0".join((str(salt), *(text for _, text in shown)))
        mark = hashlib.sha256(digits.encode("utf-8", "replace")).hexdigest()[:16]
        salt += 1
    return "\n\n".join(f"<<{mark} {name}\n{text}\n{mark}>>" for name, text in shown), mark


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


def seen(text: str) -> str:
    """Return the text as a person sees it, without marks of templates: `<|im_end|>`, `[INST]`, `</s>`."""
    if not (text.isascii() and text.isprintable()):
        text = _LINES.sub("\n", _SURROGATES.sub("\ufffd", text))
        text = _UNSEEN.sub("", text)
        text = _STYLED.sub(lambda match: unicodedata.normalize("NFKC", match.group()), text)
        # A word of Cyrillic or Greek letters alone is Russian or Greek; only a mixed one is a disguise.
        text = _WORD.sub(lambda match: match[0].translate(_LOOKALIKES) if _LATIN.search(match[0]) else match[0], text)
    text = _TAG.sub(lambda match: f"‹{match[1]}{'›' * match[0].endswith('>')}", text)
    return _BRACKET.sub(r"(\1)", text).replace("|>", "|›")


def cut(text: str, most: int) -> str:
    """Return at most about `most` characters: the middle of a longer text is left out, with a note that says so."""
    if len(text) <= most:
        return text
    half = most // 2
    return f"{text[:half]} [… {len(text) - 2 * half:,} characters are left out here …] {text[-half:]}"


_PARTS_ASKED = 3
_PARTS = re.compile(r"(?<=[?？])|[!！。‹›]")
YES, NO = " Yes", " No"
LARGEST = 100.0  # larger than any difference of two log probabilities of likely tokens
_TEXTS = PROMPTS["logit"]


def filled(question: str, accepted: str, candidate: str) -> str:
    """Return an item as the model reads it, up to where it says Yes or No."""
    template: str = _TEXTS["template"]
    return template.format(question=question, accepted=accepted.rstrip(" .。"), candidate=candidate)


PREFIX = "".join(
    f"{filled(example['question'], example['accepted'], example['candidate'])}{example['reply']}\n\n"
    for example in _TEXTS["examples"]
)
PROMPT = f"logit@{digest(PREFIX, _TEXTS['template'])}"


@dataclass(frozen=True, slots=True)
class Logit:
    """The parameters of the grader `logit`, as written in a spec."""

    model: str = ""
    """With its parameters: `local(gguf="FILE")`. Empty = local. Only `local` reports how likely a token is."""
    threshold: float = 0.0  # an answer is correct above this
    longest: Length = 1_500
    prompt: str = ""  # the digest of its prompt, to accept only this one

    def digest(self) -> str:
        """Return a digest of the prompt, and of how texts are read."""
        return digest(PROMPT, READ)


class LogitGrader:
    """Grades with the next token of a local model. It compares with accepted answers: a rubric alone is not enough."""

    def __init__(self, how: Logit, models: Models) -> None:
        """`how.model` is the full name of an available model."""
        self.how, self._models = replace(how, prompt=how.digest()), models
        self.name, self.used = spec("logit", self.how), GraderUsage()

    def grade(self, items: Sequence[GradedItem]) -> list[Grade | Missing]:
        """Return a grade for each item, one after the other: the model is in this process."""
        return [self._graded(item) for item in items]

    def _graded(self, item: GradedItem) -> Grade | Missing:
        if not item.accepted:
            return Missing("unsupported", f"a question of the kind {item.kind} has no answer to compare with")
        candidate = seen(item.candidate)
        if not candidate.strip():
            return Grade(False, -LARGEST, "the answer is empty")
        # The parts of the question that ask, or all of it if none has a question mark.
        asked = seen(item.question)
        parts = (part.strip() for part in _PARTS.split(asked))
        question = " ".join(part for part in parts if part.endswith(("?", "？"))) or asked
        try:
            scores = {accepted: self._score(question, accepted, candidate) for accepted in map(seen, item.accepted)}
        except ModelError as error:
            return Missing("failed", str(error))
        if not all(map(math.isfinite, scores.values())):
            return Missing("unusable", f"{self.how.model}: neither Yes nor No is among its likeliest tokens")
        best, score = max(scores.items(), key=lambda scored: scored[1])
        return Grade(score > self.how.threshold, score, f"logit(Yes) - logit(No) is {score:.2f} for {best[:60]!r}")

    def _score(self, question: str, accepted: str, candidate: str) -> float:
        """Return the lowest score of the sentences of an accepted answer: the candidate has to say all of it.

        Who writes the accepted answer decides what is right: a sentence that is slipped into it can only make an answer
        look wrong. -inf if the model takes neither Yes nor No to be likely. Raises ModelError.
        """
        least, parts = LARGEST, sentences(accepted)
        for part in parts if 1 < len(parts) <= _PARTS_ASKED else [accepted]:
            # Sentences of the answer that share a word with question or part, or all of them if none does. As a rule a
            # sentence of an answer does, and one that speaks to the grader or fills space does not. Of the defences
            # against attacks the one that counted; it cost one answer of 120 (decision 25).
            topics = {*terms(question), *terms(part)}
            said = sentences(re.sub("[‹›]", "\n", candidate))
            on_topic = [sentence for sentence in said if not topics.isdisjoint(terms(sentence))]
            read = cut(" ".join(on_topic or said), self.how.longest)
            # On one line each, with single white space.
            text = filled(*(" ".join(text.split()) for text in (question, part, read)))
            choice = self._models.choose(Choice(self.how.model, PREFIX, text, (YES, NO), PROMPT))
            self.used.add(choice.input_tokens)
            if not choice.logprobs:
                return -math.inf
            least = min(least, round(choice.of(YES) - choice.of(NO), 4))
        return least
