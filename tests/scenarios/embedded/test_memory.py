"""The acceptance scenarios of the memory tiers: as large as the document says, and every question has its answer."""

from __future__ import annotations

import pytest

from ctxbench.metrics.tokens import TokenCounter
from ctxbench.scenarios.embedded import LANGUAGES, scenario
from ctxbench.scenarios.model import Conversation

COUNTER = TokenCounter()


def tokens(conversation: Conversation) -> list[int]:
    return [COUNTER.message(message) for message in conversation.messages]


@pytest.mark.parametrize("name", ["mem_001", "mem_002", "mem_003"])
def test_the_same_seed_gives_the_same_bytes(name: str) -> None:
    """In both languages; another seed gives another conversation."""
    found = [[each.digest() for each in scenario(name, turns=12, seed=seed)] for seed in (0, 0, 1)]
    assert found[0] == found[1]
    assert all(one != other for one, other in zip(found[0], found[2], strict=True))
    assert [each.language for each in scenario(name, turns=12)] == list(LANGUAGES)


def test_mem_001_is_messages_of_two_hundred_tokens() -> None:
    """A system prompt of some 800 tokens, then user messages of 200 on average, three times what Focus holds."""
    for conversation in scenario("mem_001"):
        counted = tokens(conversation)
        users = [count for count, each in zip(counted, conversation.messages, strict=True) if each.role == "user"]
        assert 700 < counted[0] < 1024
        assert 170 < sum(users) / len(users) < 260
        assert sum(counted) > 3 * 8192


@pytest.mark.slow
def test_mem_002_is_ten_thousand_messages_and_a_thousand_questions() -> None:
    """2M tokens within a tenth. 800 questions about 2000 messages and 200 about 8000 are about 856 different ones;
    were all alike, they would be 952.
    """
    for conversation in scenario("mem_002"):
        assert len(conversation.messages) == 1 + 10_000 + 2 * 1_000
        assert sum(tokens(conversation)[:10_001]) == pytest.approx(2_000_000, rel=0.1)
        asked = {probe.evidence[0] for probe in conversation.probes}
        assert (len(conversation.probes), len(asked)) == (1_000, pytest.approx(856, abs=40))


@pytest.mark.parametrize("name", ["mem_001", "mem_002"])
def test_a_question_has_one_answer(name: str) -> None:
    """It stands in the evidence, said before, and what tells the message from the others is in no other record."""
    for conversation in scenario(name, turns=300, seed=2):
        place = {message.id: at for at, message in enumerate(conversation.messages)}
        for probe in conversation.probes:
            (evidence,) = probe.evidence
            message = conversation.messages[place[evidence]]
            assert probe.answers[0] in message.text
            assert place[evidence] <= place[probe.after]
            quote = probe.question.split('"')[1] if '"' in probe.question else ""
            having = [each for each in conversation.messages[: place[probe.after]] if quote and quote in each.text]
            assert not quote or evidence in {each.id for each in having}


@pytest.mark.parametrize("turns", [1, 5, 6, 7])
def test_few_turns(turns: int) -> None:
    """However short: no turn is more or less than asked for."""
    for name in ("mem_001", "mem_002"):
        for conversation in scenario(name, turns=turns):
            assert sum(message.role == "user" for message in conversation.messages) == turns


def test_mem_003_is_a_hundred_thousand_tokens() -> None:
    """Within a tenth."""
    for conversation in scenario("mem_003"):
        assert sum(tokens(conversation)) == pytest.approx(100_000, rel=0.1)
