"""The grader `llm`: a model reads the question, the accepted answers and the candidate, and gives a verdict as JSON."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

import msgspec

from ...metrics.grading import Grade, Item
from ...metrics.tokens import TokenCounter
from ...metrics.value import Missing
from ...scenarios.spec import spec
from ...strategies.base import ModelError
from ..models import Unusable
from .prompts import Prompt, digest, fenced
from .rubrics import Variant, parts, rubric, rubrics
from .text import READ
from .usage import Used
from .verdicts import Verdict, read, schema_of

if TYPE_CHECKING:
    from ..models import Models, Reply
    from ..models.recorded import Request

T = TypeVar("T")
TOKENS = 300
"""Of a reply."""


@dataclass(frozen=True, slots=True)
class Llm:
    """How an LLM grades, as it is written in a spec."""

    model: str = ""
    """Empty = the run's grader."""
    variant: Variant = "strict"
    votes: int = 1
    """Odd: the verdict is that of the majority."""
    temperature: float = 0.0
    longest: int = 8_000
    """Characters of one text that are shown."""
    prompt: str = ""
    """The digest of its prompts, if only these will do."""

    def __post_init__(self) -> None:
        if self.votes < 1 or self.votes % 2 == 0:
            raise ValueError(f"votes must be odd, so that there is a majority, not {self.votes}")
        if self.votes > 1 and not self.temperature:
            raise ValueError(f"{self.votes} votes at temperature 0 are one: give temperature=0.7")
        if not 0 <= self.temperature <= 2 or self.longest < 100:
            raise ValueError("temperature is from 0 to 2, longest is 100 characters or more")

    def digest(self) -> str:
        """Of the prompts of this variant, and of how texts are read."""
        return digest(*(each.full for each in rubrics(self.variant)), READ)


class LlmGrader:
    """Grades with a model. What gets no majority of readable verdicts is Missing."""

    def __init__(self, how: Llm, models: Models) -> None:
        """`how.model` is the full name of a model that there is."""
        self.how, self._models, self._counter = replace(how, prompt=how.digest()), models, TokenCounter()
        self.used = Used()

    @property
    def name(self) -> str:
        """`llm(model='…', variant='…', prompt='…')`."""
        return spec("llm", self.how)

    def grade(self, items: Sequence[Item]) -> list[Grade | Missing]:
        """A grade each."""
        asked = [self._requests(item) for item in items]
        replies = ask(self._models, [request for some in asked for request in some], self._counter, self.used)
        return [self._graded([replies[request.canonical()] for request in some]) for some in asked]

    def _requests(self, item: Item) -> list[Request]:
        how, prompt = self.how, rubric(item.kind, self.how.variant)
        text = whole(prompt, parts(item), how.longest)
        return [request(how.model, text, prompt, Verdict, how.temperature, vote) for vote in range(how.votes)]

    def _graded(self, replies: Sequence[Reply | Missing]) -> Grade | Missing:
        votes = [reply if isinstance(reply, Missing) else read(reply.text, Verdict) for reply in replies]
        verdicts = [vote for vote in votes if not isinstance(vote, Missing)]
        right = sum(verdict.verdict == "CORRECT" for verdict in verdicts)
        needed = self.how.votes // 2 + 1
        if max(right, len(verdicts) - right) < needed:
            return next(vote for vote in votes if isinstance(vote, Missing))
        correct = right >= needed
        reason = next(each.reason for each in verdicts if (each.verdict == "CORRECT") == correct)
        raw = "\n".join(reply.text for reply in replies if not isinstance(reply, Missing))
        return Grade(correct, right / len(verdicts), reason, raw)


def whole(prompt: Prompt, texts: Mapping[str, str | Sequence[str]], longest: int) -> str:
    """The whole prompt: instructions, the data, and the form of the reply after it."""
    data, mark = fenced(texts, longest)
    return f"{prompt.text}\n\nThe mark is {mark}.\n\n{data}\n\nThe data ends here. {prompt.form}"


def request(
    model: str, text: str, prompt: Prompt, kind: type[msgspec.Struct], temperature: float = 0.0, vote: int = 0
) -> Request:
    """What a model is asked for one verdict."""
    from ..models.recorded import Request

    return Request(model, text, temperature, TOKENS, schema=schema_of(kind), vote=vote, prompt=prompt.full)


def ask(models: Models, requests: Sequence[Request], counter: TokenCounter, used: Used) -> dict[str, Reply | Missing]:
    """The reply to each request by its canonical text, or why there is none. The same request is made once.

    A provider is asked several at once, a model in this process one after the other.
    """
    once = {request.canonical(): request for request in requests}

    def one(request: Request) -> tuple[Reply | None, Missing | None]:
        try:
            return models.chat(request, counter), None
        except Unusable as error:  # it has to be paid all the same
            return error.reply, Missing("failed", str(error))
        except ModelError as error:
            return None, Missing("failed", str(error))

    found: dict[str, Reply | Missing] = {}
    for text, (reply, missing) in zip(
        once, _mapped(one, list(once.values()), models.settings.concurrency), strict=True
    ):
        if reply is not None:
            used.add(reply.input_tokens, reply.output_tokens, reply.cost)
        found[text] = reply if missing is None else missing  # type: ignore[assignment]
    return found


def _mapped(one: Callable[[Request], T], requests: Sequence[Request], at_once: int) -> list[T]:
    if not requests:
        return []
    first = one(requests[0])  # alone: it opens what all use
    pool = ThreadPoolExecutor(at_once)
    try:
        return [first, *pool.map(one, requests[1:])]
    finally:
        pool.shutdown(cancel_futures=True)  # when the user stops it: no more calls
