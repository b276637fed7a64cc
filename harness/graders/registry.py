"""Create graders by name: `rules`, `llm(variant='lenient')`, `logit`, `ragas(metric='faithfulness')`.

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
from ctxbench.scenarios.spec import parse, spec

from ..models import Models, Settings
from .llm import Llm, LlmGrader
from .logit import Logit, LogitGrader
from .ragas import Ragas, RagasGrader


@dataclass(frozen=True, slots=True)
class RulesSpec:
    """The grader `rules`: numbers, dates, names, words and negation, compared by rules. It needs no model."""


KINDS: Mapping[str, type[Any]] = {"rules": RulesSpec, "llm": Llm, "logit": Logit, "ragas": Ragas}
"""The class that reads the parameters of each name."""


def grader(name: str, settings: Settings | None = None, models: Models | None = None) -> Grader:
    """Return the grader of a specification. `models` are those of the command, if it has them already.

    Raises SpecError for an unknown grader, SetupError for an unusable model, MissingExtra for a missing library. No
    model is called yet.
    """
    specification = parse(name, KINDS, "grader")
    if isinstance(specification, RulesSpec):
        from ctxbench.metrics.grading.rules import RulesGrader

        return RulesGrader()
    available = models or Models(settings or Settings())
    return _MAKERS[type(specification)](_with_model(specification, available), available)


def _with_model(how: Any, models: Models) -> Any:
    """Return the specification with the full name of its model, and with the digest of today's prompts."""
    digest = how.digest()
    if how.prompt and how.prompt != digest:
        name = next(name for name, kind in KINDS.items() if isinstance(how, kind))
        raise SpecError(
            f"grader {spec(name, how)}: its prompts have changed since, to {digest}: "
            "give it without prompt, and do not compare its grades with those"
        )
    # Without a model in its name: grades by words alone are the same whatever model is set.
    if isinstance(how, Ragas) and not how.asks_a_model():
        return how
    name = models.add(how.model or "local")
    return replace(how, model=_full(name, models.settings))


def _full(model: str, settings: Settings) -> str:
    """Return the full name of a model that can be called, or replayed. Raises a UserError."""
    if model == "offline":
        raise SetupError("`offline` cannot grade: it is no chat model. Use the grader `rules`, or another model")
    settings.checked({model: "grader"})
    gguf = settings.access_of("local").gguf
    if settings.replay:
        from ..models.local import recorded_name

        return recorded_name(gguf) if model == "local" else model
    if model != "local" and not model.startswith("local:"):
        return model
    from ..models.local import local_name

    weights, path = local_name(gguf)
    if model not in ("local", weights):
        raise SetupError(f"grader: {path} holds {weights}, not {model}: name its weights (gguf=…), or replay")
    return weights


_MAKERS: Mapping[type[Any], Callable[[Any, Models], Grader]] = {Llm: LlmGrader, Logit: LogitGrader, Ragas: RagasGrader}
