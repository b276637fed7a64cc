"""Create graders by name: `rules`, `llm(variant='lenient')`, `logit`.

The parameters are those of the dataclass of each specification. A grader's own name has everything that its grades
depend on: the full name of its model, and a digest of its prompts. That name is accepted as a specification, and
rejected once the prompts have changed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ctxbench.metrics.grading import Grader
from ctxbench.scenarios.errors import SetupError, SpecError
from ctxbench.scenarios.spec import parse

from ..models import Models, Settings
from .llm import Llm, LlmGrader, Logit, LogitGrader


@dataclass(frozen=True, slots=True)
class RulesSpec:
    """The grader `rules`: numbers, dates, names, words and negation, compared by rules. It needs no model."""


KINDS: Mapping[str, type[Any]] = {"rules": RulesSpec, "llm": Llm, "logit": Logit}
"""The class that reads the parameters of each name."""
_MAKERS: Mapping[type[Any], Callable[[Any, Models], Grader]] = {Llm: LlmGrader, Logit: LogitGrader}


def grader(name: str, settings: Settings | None = None, models: Models | None = None) -> Grader:
    """Return the grader of a specification. `models` are those of the command, if it has them already.

    Raises SpecError for an unknown grader, SetupError for an unusable model, MissingExtra for a missing library. No
    model is called yet.
    """
    how = parse(name, KINDS, "grader")
    if isinstance(how, RulesSpec):
        from ctxbench.metrics.grading.rules import RulesGrader

        return RulesGrader()
    available, digest = models or Models(settings or Settings()), how.digest()
    if how.prompt and how.prompt != digest:
        raise SpecError(
            f"grader {name}: its prompts have changed since, to {digest}: "
            "give it without prompt, and do not compare its grades with those"
        )
    model = available.add(how.model or "local")
    if model == "offline":
        raise SetupError("`offline` cannot grade: it is no chat model. Use the grader `rules`, or another model")
    available.settings.checked({model: "grader"})
    if model == "local" or (model.startswith("local:") and not available.settings.replay):
        weights, path = available.settings.local()
        if model not in ("local", weights):
            raise SetupError(f"grader: {path} holds {weights}, not {model}: name its weights (gguf=…), or replay")
        model = weights
    return _MAKERS[type(how)](replace(how, model=model), available)
