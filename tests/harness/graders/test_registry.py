"""Graders by name."""

from pathlib import Path

import pytest

from ctxbench.harness.graders.registry import grader
from ctxbench.harness.models import ModelAccess, Models, Settings
from ctxbench.harness.models.local import NAME
from ctxbench.scenarios.errors import SetupError, SpecError

MODEL = "model='openai/gpt-4o-mini'"


def test_rules_need_nothing() -> None:
    """`rules` asks no model, so none is looked for."""
    assert grader("rules").name.startswith("rules")


def test_a_grader_is_known_by_its_model_and_prompts() -> None:
    """The name can be given again and makes the same grader; how the model is reached is not part of it."""
    made = grader(f"llm({MODEL}, variant='lenient', votes=3, temperature=0.5)")
    assert made.name.startswith("llm(model='openai/gpt-4o-mini', variant='lenient', votes=3, temperature=0.5, prompt='")
    assert grader(made.name).name == made.name
    assert made.how.model == "openai/gpt-4o-mini"
    models = Models(Settings())
    assert grader("llm(model='openai/m(timeout=5)')", models=models).how.model == "openai/m"
    assert models.settings.access_of("openai/m").timeout == 5


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("rule", r"unknown grader 'rule'; did you mean 'rules'\?"),
        ("llm(votes=2)", "votes must be odd"),
        ("llm(votes=3)", "3 votes at temperature 0 are all the same: give temperature=0.7"),
        ("llm(variant='strikt')", r"variant must be .* did you mean 'strict'\?"),
        ("llm(prompt='000000000000')", "its prompts have changed since, to [0-9a-f]{12}: give it without prompt"),
        ("rules | llm", "one grader is wanted, not a chain"),
    ],
)
def test_what_names_no_grader(name: str, says: str) -> None:
    """The error says what there is, or what to give instead."""
    with pytest.raises(SpecError, match=says):
        grader(name)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("llm(model='offline')", "`offline` cannot grade"),
        ("llm(model='gpt-4o-mimi')", "grader: unknown model 'gpt-4o-mimi'; did you mean"),
        ("llm", "no weights for the model `local`: give local"),
        ("llm(model='local(gguf=\"/nowhere.gguf\")')", "/nowhere.gguf: cannot be read"),
    ],
)
def test_a_model_that_cannot_be_used(name: str, says: str) -> None:
    """It is said before anything is graded."""
    with pytest.raises(SetupError, match=says):
        grader(name)


def test_a_local_model_is_replayed_without_its_weights(tmp_path: Path) -> None:
    """`local` is the weights of `make local-model` where there are none to look at."""
    assert grader("logit", Settings(replay=True)).how.model == NAME


def test_other_weights_than_asked_for(tmp_path: Path) -> None:
    """A full name of a local model that is not the one in the file is refused: its grades would be another's."""
    pytest.importorskip("xllamacpp")
    (tmp_path / "m.gguf").write_bytes(b"GGUF" + b"x" * 1000)
    settings = Settings(usual=ModelAccess(gguf=str(tmp_path / "m.gguf")), cassette=str(tmp_path / "c"))
    assert grader("logit", settings).how.model.startswith("local:m@")
    with pytest.raises(SetupError, match=r"m\.gguf holds local:m@\w+, not local:other@123"):
        grader("logit(model='local:other@123')", settings)
