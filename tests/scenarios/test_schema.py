"""The published JSON Schema is the model's, and what `convert` writes fits it."""

import json
from pathlib import Path

from jsonschema import Draft202012Validator

from ctxbench.scenarios.embedded import scenario
from ctxbench.scenarios.model import schema

PUBLISHED = Path(__file__).parents[2] / "docs" / "recording.schema.json"


def test_the_published_schema_is_current() -> None:
    """docs/recording.schema.json is what the model says; `make schema` writes it anew."""
    assert json.loads(PUBLISHED.read_text()) == json.loads(json.dumps(schema()))


def test_scenarios_fit_the_schema() -> None:
    """Every conversation of the smoke scenario is valid under the published schema, by an independent validator."""
    published = json.loads(PUBLISHED.read_text())
    Draft202012Validator.check_schema(published)
    validator = Draft202012Validator(published)
    for conversation in scenario("smoke"):
        validator.validate(json.loads(conversation.to_json()))
    assert not validator.is_valid({"ctxbench": "1", "id": "x", "messages": [{"id": "m", "role": "boss"}]})
