"""Graders by name: `rules`, `llm(variant='lenient')`, `logit`, `ragas(metric='faithfulness')`.

What each takes is in the dataclass of its specification. A grader's own name has all that its grades depend on: the
full name of its model, and a digest of its prompts. It can be given again, and is refused once these have changed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ...metrics.grading import Grader
from ...scenarios.errors import SetupError, SpecError
from ...scenarios.spec import parse, spec
from ..models import Models, Settings
from .llm import Llm, rubrics
from .logit import Logit
from .ragas import Ragas


@dataclass(frozen=True, slots=True)
class RulesSpec:
    """Numbers, dates, names, words and negation, compared by rules. No model, the same everywhere."""


KINDS: Mapping[str, type[Any]] = {"rules": RulesSpec, "llm": Llm, "logit": Logit, "ragas": Ragas}
"""The class that reads each name's parameters."""


def grader(name: str, settings: Settings | None = None, models: Models | None = None) -> Grader:
    """The grader of a specification. `models`: those of the command, if it has made them already.

    Raises SpecError for what names no grader, SetupError for a model that it cannot use, MissingExtra for a library
    that is not there. No model is asked anything yet.
    """
    asked = parse(name, KINDS, "grader")
    if isinstance(asked, RulesSpec):
        from ...metrics.grading.rules import RulesGrader as Made

        return Made()
    found = models or Models(settings or Settings())
    return _MAKERS[type(asked)](_with_model(asked, found.settings), found)


def prompts() -> dict[str, str]:
    """The digest of every prompt that there is, by its name."""
    from .logit import PROMPTS
    from .pairwise import PROMPT

    return {each.name: each.digest for each in (*rubrics("strict"), *rubrics("lenient"), PROMPT, *PROMPTS)}


def model_of(grader: Grader) -> str:
    """The model that a grader asks; empty if none. For a warning where it is the answerer's: it is kind to itself."""
    return str(getattr(getattr(grader, "how", None), "model", ""))


def _with_model(asked: Any, settings: Settings) -> Any:
    """With the full name of its model, if it asks one, and with prompts that are those of today."""
    digest = asked.digest()
    if asked.prompt and asked.prompt != digest:
        name = next(name for name, kind in KINDS.items() if isinstance(asked, kind))
        raise SpecError(
            f"grader {spec(name, asked)}: its prompts have changed since, to {digest}: "
            "give it without prompt, and do not compare its grades with those"
        )
    if isinstance(asked, Ragas) and not asked.asks_a_model():
        return asked
    return replace(asked, model=_full(asked.model or settings.grader, settings))


def _full(model: str, settings: Settings) -> str:
    """The full name of a model that can be asked, or replayed. Raises a UserError."""
    if model == "offline":
        raise SetupError("`offline` grades nothing: it is no chat model. Give the grader `rules`, or another model")
    settings.checked({model: "grader"})
    if settings.mode == "replay":
        from ..models.local import recorded_name

        return recorded_name(settings.gguf) if model == "local" else model
    if model != "local" and not model.startswith("local:"):
        return model
    from ..models.local import local_name

    found, path = local_name(settings.gguf)
    if model not in ("local", found):
        raise SetupError(f"grader: {path} holds {found}, not {model}: name its weights with --gguf, or replay")
    return found


def _llm(how: Llm, models: Models) -> Grader:
    from .llm import LlmGrader

    return LlmGrader(how, models)


def _logit(how: Logit, models: Models) -> Grader:
    from .logit import LogitGrader

    return LogitGrader(how, models)


def _ragas(how: Ragas, models: Models) -> Grader:
    from .ragas_grader import RagasGrader

    return RagasGrader(how, models)


_MAKERS: Mapping[type[Any], Callable[[Any, Models], Grader]] = {Llm: _llm, Logit: _logit, Ragas: _ragas}
