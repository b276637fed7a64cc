"""The traps: each really holds what breaks libraries."""

from __future__ import annotations

import json

import pytest

from ctxbench.scenarios.embedded.traps import make_all
from ctxbench.scenarios.errors import Place
from ctxbench.scenarios.model import Conversation, check
from tests.scenarios.embedded.test_kinds import without_gold

TRAPS = {conversation.id.removeprefix("traps/"): conversation for conversation in make_all()}


@pytest.fixture(params=TRAPS, name="trap")
def each_trap(request: pytest.FixtureRequest) -> Conversation:
    return TRAPS[request.param]


def results(conversation: Conversation) -> list[str | None]:
    return [message.answers for message in conversation.messages if message.role == "tool"]


def test_each_passes_the_check(trap: Conversation) -> None:
    """Every trap is a valid recording that says what it tests."""
    check(trap, Place("embedded"))
    assert isinstance(trap.meta["trap"], str)
    assert 4 <= len(trap.messages) <= 40


def test_each_is_the_same_every_time() -> None:
    """Traps have no chance in them."""
    assert [c.to_json() for c in make_all()] == [c.to_json() for c in TRAPS.values()]


def test_each_probe_has_its_gold(trap: Conversation) -> None:
    """One to four probes, each answer word for word in a message it rests on, or marked as computed."""
    assert 1 <= len(trap.probes) <= 4
    assert list(without_gold(trap)) == []


def test_parallel_calls_are_answered_in_another_order() -> None:
    """Two messages have three calls each, and their results come in another order than the calls."""
    trap = TRAPS["parallel_tool_calls"]
    calls = [[call.id for call in message.calls] for message in trap.messages if message.calls]
    assert [len(group) for group in calls] == [3, 3]
    answered = results(trap)
    assert sorted(filter(None, answered)) == sorted(calls[0] + calls[1])
    assert answered[:3] != calls[0]
    assert answered[3:] != calls[1]


def test_a_call_stays_unanswered() -> None:
    """Two calls have no result, and the user speaks after the first."""
    trap = TRAPS["unanswered_call"]
    asked = {call.id for message in trap.messages for call in message.calls}
    assert len(asked - set(results(trap))) == 2
    at = next(at for at, message in enumerate(trap.messages) if message.calls)
    assert trap.messages[at + 1].role == "user"


def test_one_result_is_enormous() -> None:
    """One result has some 400 000 characters of differing lines, and the fact in its middle third."""
    log = max((message.text for message in TRAPS["enormous_result"].messages), key=len)
    assert len(log) >= 390_000
    lines = log.splitlines()
    assert len(set(lines)) == len(lines)
    assert len(log) / 3 < log.index("ZX-4471-QD") < 2 * len(log) / 3
    assert log.count("shard 107") == 1


def test_contradictions_end_in_the_last_word() -> None:
    """The updated facts were said otherwise before."""
    trap = TRAPS["contradictions"]
    assert sum(probe.category == "updated_fact" for probe in trap.probes) == 3
    early = "".join(message.text for message in trap.messages[:3])
    assert "room 4" in early
    assert "penicillin" in early


def test_exact_code_has_what_is_easily_lost() -> None:
    """Tabs, two spaces in a row, a regex, a UUID, a hash and a path stand in it."""
    text = "".join(message.text for message in TRAPS["exact_code"].messages)
    for part in ("\n\t\t", "return  'archive'", r"(?:[a-z]+-)*", "6f1d2c3e-88b4", "\\\\depot-03", "}\t\n", "\n\n\n"):
        assert part in text


def test_some_messages_are_blank() -> None:
    """Empty, space-only and newline-only messages stand between others, from both sides."""
    messages = TRAPS["empty_and_blank"].messages[1:-1]
    texts = {message.text for message in messages}
    assert {"", "   ", "\n\n\n"} <= texts
    assert {message.role for message in messages if not message.text.strip()} == {"user", "assistant"}


def test_unicode_is_wide() -> None:
    """Joined emoji, Arabic, Hebrew, Chinese beyond the BMP, combining marks, zero-width and bidi characters."""
    text = "".join(message.text for message in TRAPS["unicode"].messages)
    for part in (
        "\u200d👩",
        "\u200d🌈",
        "ليلى",
        "הגשר",
        "𠮷",
        "o\u0308",
        "\u200b",
        "\ufeff",
        "\u202e",
        "\u2067",
        "\u00ad",
    ):
        assert part in text
    text.encode()


def test_the_system_prompt_changes_midway() -> None:
    """A second system message stands after user turns, and the probes ask for its rules."""
    trap = TRAPS["system_changed"]
    places = [at for at, message in enumerate(trap.messages) if message.role == "system"]
    assert places[0] == 0
    assert places[1] > 3
    new = trap.messages[places[1]].id
    assert sum(new in probe.evidence for probe in trap.probes) >= 2


def test_there_are_several_system_messages() -> None:
    """Three stand at the start and more between the turns, one of them empty."""
    roles = [message.role for message in TRAPS["several_systems"].messages]
    assert roles[:3] == ["system"] * 3
    assert roles[3:].count("system") == 3


def test_an_agent_acts_ten_times_in_silence() -> None:
    """Ten calls follow one user message without a word."""
    trap = TRAPS["tool_only_turns"]
    acting = [message for message in trap.messages if message.calls]
    assert len(acting) == 10
    assert not any(message.text for message in acting)
    assert sum(message.role == "user" for message in trap.messages) == 1


def test_the_assistant_speaks_first() -> None:
    """Two assistant messages stand before anything else."""
    assert [message.role for message in TRAPS["first_assistant"].messages[:3]] == ["assistant", "assistant", "user"]


def test_one_user_message_is_long() -> None:
    """One user message has 60 000 characters."""
    assert any(
        message.role == "user" and len(message.text) >= 60_000 for message in TRAPS["long_single_user_message"].messages
    )


def test_a_message_is_repeated() -> None:
    """The same user message stands 15 times, one differs."""
    texts = [message.text for message in TRAPS["repeated_identical"].messages if message.role == "user"]
    assert len(texts) == 16
    assert len(set(texts)) == 2


def test_arguments_are_no_json_objects() -> None:
    """Four calls have arguments that do not read as a JSON object, one of them none at all."""

    def is_object(text: str) -> bool:
        try:
            return isinstance(json.loads(text), dict)
        except ValueError:
            return False

    arguments = [call.arguments for message in TRAPS["tool_call_bad_json"].messages for call in message.calls]
    assert sum(not is_object(text) for text in arguments) == 4
    assert "" in arguments
