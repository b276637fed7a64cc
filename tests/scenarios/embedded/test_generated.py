"""What is generated: any number of conversations of any length, the same bytes from the same seed."""

import hashlib
import re

import pytest

from ctxbench.metrics.tokens import TokenCounter
from ctxbench.scenarios.embedded import GENERATED, LANGUAGES, scenario
from ctxbench.scenarios.errors import Place
from ctxbench.scenarios.model import Conversation, check
from tests.scenarios.embedded.test_sets import without_gold

COUNTER = TokenCounter()
PINNED = {
    "load": "91135d18fb3fff70",
    "mem_001": "7b7bb58e63cd59ae",
    "mem_002": "e6f83d877d4e23ed",
}
"""The start of the SHA-256 over the digests of seed 3, with 12 turns: claims draw seeds of them."""


def tokens(conversation: Conversation) -> list[int]:
    return [COUNTER.message(message) for message in conversation.messages]


@pytest.mark.parametrize("name", GENERATED)
def test_the_same_seed_gives_the_same_bytes(name: str) -> None:
    """In both languages, and the same as ever, in a process that hashes text anew; another seed gives another one."""
    found = [[each.digest() for each in scenario(name, 12, seed)] for seed in (3, 3, 4)]
    assert found[0] == found[1]
    assert all(one != other for one, other in zip(found[0], found[2], strict=True))
    assert [each.language for each in scenario(name, 12)] == list(LANGUAGES)
    assert hashlib.sha256("".join(found[0]).encode()).hexdigest().startswith(PINNED[name])


@pytest.mark.parametrize("name", GENERATED)
def test_any_number_of_conversations(name: str) -> None:
    """They come from consecutive seeds, no two with one id; the first of a thousand million is there at once."""
    whole = list(scenario(name, 1, 0, 20))
    assert len({conversation.id for conversation in whole}) == 20
    assert [*scenario(name, 1, 1), *scenario(name, 1, 2, 3)] == whole[2:7]
    assert next(scenario(name, 1, 0, 10**9)) == whole[0]


@pytest.mark.parametrize("turns", [1, 3, 12, 100])
@pytest.mark.parametrize("name", GENERATED)
def test_has_the_turns_asked_for(name: str, turns: int) -> None:
    """Any number of user turns is honoured, the conversation is sound, every call has its result, the agent answers."""
    for conversation in scenario(name, turns, 2):
        check(conversation, Place("made"))
        assert sum(message.role == "user" for message in conversation.messages) == turns
        assert conversation.messages[-1].role == "assistant"
        calls = [call.id for message in conversation.messages for call in message.calls]
        assert len(calls) == len(set(calls))
        assert {message.answers for message in conversation.messages if message.role == "tool"} == set(calls)


@pytest.mark.parametrize("turns", [1, 12, 100])
@pytest.mark.parametrize("seed", range(4))
def test_each_question_of_the_load_has_its_gold(turns: int, seed: int) -> None:
    """An answer stands in the evidence or is marked as computed, the evidence was said before; nothing is left open."""
    for conversation in scenario("load", turns, seed):
        assert list(without_gold(conversation)) == []
        place = {message.id: at for at, message in enumerate(conversation.messages)}
        for probe in conversation.probes:
            assert all(place[name] <= place[probe.after] for name in probe.evidence)
            assert len(probe.evidence) > 1 or probe.category != "multi_hop"
        said = [message.text for message in conversation.messages if message.role in ("user", "assistant")]
        text = "".join((*said, *(probe.question for probe in conversation.probes)))
        assert not re.search(r"[${}«»¶|\[\]]", text)
        if conversation.language == "zh":
            assert not re.search(r"[A-Za-z]{2,} [A-Za-z]{2,}", text)


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


def test_mem_003_is_a_hundred_thousand_tokens() -> None:
    """Each conversation, within a tenth."""
    for conversation in scenario("mem_003"):
        assert sum(tokens(conversation)) == pytest.approx(100_000, rel=0.1)


@pytest.mark.parametrize("name", ["mem_001", "mem_002"])
def test_a_question_has_one_answer(name: str) -> None:
    """It stands in the evidence, said before; the number or quotation in the question is that message's."""
    for conversation in scenario(name, turns=300, seed=2):
        place = {message.id: at for at, message in enumerate(conversation.messages)}
        for probe in conversation.probes:
            (evidence,) = probe.evidence
            assert probe.answers[0] in conversation.messages[place[evidence]].text
            assert place[evidence] <= place[probe.after]
            quote = probe.question.split('"')[1] if '"' in probe.question else ""
            having = [each.id for each in conversation.messages[: place[probe.after]] if quote and quote in each.text]
            assert not quote or evidence in having
