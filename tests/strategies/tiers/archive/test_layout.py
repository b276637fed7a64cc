"""Messages in columns, and JSON texts by their keys."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxbench.scenarios.model import Message
from ctxbench.strategies.tiers.archive import ArchivedMessage
from ctxbench.strategies.tiers.archive.part import (
    HOLE,
    SCALARS_OF_LINE,
    PartMessages,
    by_field,
    by_key,
    join_shape,
    split_shape,
)
from tests.strategies.tiers.archive.builders import JSON, MESSAGES

SPACED = st.sampled_from([(", ", ": "), (",", ":"), (" ,\n", "  :\t")])


def again(text: str) -> str | None:
    if (found := split_shape(text)) is None:
        return None
    shape, scalars = found
    return join_shape(shape, {key: SCALARS_OF_LINE.findall(",".join(row)) for key, row in scalars.items()})


@given(JSON, SPACED, st.none() | st.integers(0, 3), st.booleans())
def test_any_json_comes_back_to_the_byte(
    value: object, spaced: tuple[str, str], indent: int | None, plain: bool
) -> None:
    """Whatever its spaces, its indent and its escapes, a JSON text is what it was."""
    text = json.dumps(value, separators=spaced, indent=indent, ensure_ascii=plain)
    assert again(text) in (text, None)
    assert (again(text) is None) == (not isinstance(value, dict | list))


def test_shape_by_hand() -> None:
    """The scalars of a key stand together, the rest once."""
    found = split_shape('[{"id": 7, "to": "JFK"}, {"id": 1e3, "to": null}]')
    hole = HOLE
    shape = f'[{{"id": {hole}, "to": {hole}}}, {{"id": {hole}, "to": {hole}}}]'
    assert found == (shape, {'"id"': ["7", "1e3"], '"to"': ['"JFK"', "null"]})


@pytest.mark.parametrize("text", ["", "7", "{", '{"a": }', "{'a': 1}", '{"a": "\0"}', "[" * 100_000, '{"a": NaN}'])
def test_what_has_no_shape(text: str) -> None:
    """Scalars, broken JSON, JSON that is none and endless nesting have none."""
    assert split_shape(text) is None


@given(st.lists(MESSAGES, min_size=1, max_size=8))
def test_every_message_comes_back_alone(messages: list[Message]) -> None:
    """Each message of either layout is read without the others, and is what it was, its id too."""
    for prefix in ("talk/", "", "other/x"):
        items = [ArchivedMessage(f"{prefix}{message.id}", 1, message) for message in messages]
        for content in (by_field(items), by_key(items)):
            if content is not None:
                laid = PartMessages(content, [item.id for item in items])
                for at in reversed(range(len(items))):
                    assert laid[at] == messages[at]
