"""The sets that come with ctxbench: what each holds, that its bytes stay, and that its questions have their gold."""

import hashlib
from collections import Counter
from collections.abc import Iterator

import pytest

from ctxbench.metrics.tokens import TokenCounter
from ctxbench.scenarios import embedded
from ctxbench.scenarios.embedded import (
    DIGESTS,
    ENORMOUS,
    GENERATED,
    KINDS,
    LANGUAGES,
    SCENARIOS,
    messages_in,
    named_scenario,
    scenario,
)
from ctxbench.scenarios.errors import Place, SetupError, SpecError
from ctxbench.scenarios.model import Conversation, Probe, check, independent_units

CONTENTS = {
    "smoke": (25, "docs_qa/en-0-1", "traps/tool_call_bad_json", "7a58cff19663d655"),
    "demo": (48, "docs_qa/en-0-4", "friends/zh-7-4", "a341d460fabe494b"),
    "standard": (48, "docs_qa/en-0-9", "friends/zh-7-100", "fb08c332038e77dc"),
    "questions": (10, "questions/en/support", "questions/zh/library", "b47413154f242799"),
    "traps": (14, "traps/parallel_tool_calls", "traps/tool_call_bad_json", "86b2c079ab204e5d"),
    "sessions": (20, "coding/en-8-18", "coding/en-27-24", "0f522f16615c69f9"),
    "fleet": (16, "fleet/en-0-8/0", "fleet/zh-0-8/7", "90096f1c1de1b5f9"),
    "mem_003": (6, "mem_003/en-0", "mem_003/zh-2", "4178ece982181c5a"),
    "coding": (8, "coding/en-0-7", "coding/zh-7-6", "c0fd99c4999d0829"),
}
"""Number of conversations, the first and last id, and the start of the SHA-256 over the digests. Results on other bytes
do not compare, and the recorded replies are to these."""


def computed_ids(conversation: Conversation) -> list[str]:
    """The probes whose answer is worked out from the evidence and need not stand in it."""
    return str(conversation.meta.get("computed_probes", "")).split()


def without_gold(conversation: Conversation) -> Iterator[Probe]:
    """Probes that break the law: unanswerable with gold, or an answer that neither stands there nor is computed."""
    text = {message.id: message.text for message in conversation.messages}
    for probe in conversation.probes:
        stands = any(answer in text[name] for answer in probe.answers for name in probe.evidence)
        has_gold = stands or probe.id in computed_ids(conversation)
        if has_gold != probe.answerable or bool(probe.answers) != probe.answerable:
            yield probe


@pytest.mark.parametrize("name", CONTENTS)
def test_the_bytes_stay(name: str) -> None:
    """Each set has the conversations that it always had, in their order."""
    found = list(scenario(name))
    digest = hashlib.sha256("".join(each.digest() for each in found).encode()).hexdigest()
    assert (len(found), found[0].id, found[-1].id, digest[:16]) == CONTENTS[name]


@pytest.mark.parametrize("name", DIGESTS)
def test_each_conversation_is_valid(name: str) -> None:
    """Ids are unique in a set, each conversation passes the check, and each question has its gold, said before it."""
    found = list(scenario(name))
    assert len({each.id for each in found}) == len(found)
    assert messages_in(name) == sum(len(each.messages) for each in found)
    for conversation in found:
        check(conversation, Place("embedded"))
        assert conversation.language in LANGUAGES
        assert list(without_gold(conversation)) == []
        place = {message.id: at for at, message in enumerate(conversation.messages)}
        for probe in conversation.probes:
            assert all(place[evidence] <= place[probe.after] for evidence in probe.evidence)


def test_another_file_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A set whose file is not the one of the digest is not read."""
    monkeypatch.setitem(embedded.DIGESTS, "questions", "0" * 64)
    with pytest.raises(SetupError, match=r"questions\.jsonl\.zst: is not the file that ctxbench came with"):
        list(scenario("questions"))


def test_standard_is_large_enough() -> None:
    """48 conversations, eight of each kind, no two with the same seed, and 1 to 2 million tokens."""
    found, counter = list(scenario("standard")), TokenCounter()
    assert Counter(each.id.split("/")[0] for each in found) == dict.fromkeys(KINDS, 8)
    assert len({(each.id.split("/")[0], each.id.split("-")[1]) for each in found}) == len(found)
    assert 1_000_000 <= sum(counter.message(message) for each in found for message in each.messages) <= 2_000_000
    parts = [each.digest() for kind in KINDS for each in scenario(kind)]
    assert parts == [each.digest() for each in found]


def test_smoke_holds_every_kind_and_the_traps() -> None:
    """Every kind in both languages, and all traps but the enormous one."""
    found = list(scenario("smoke"))
    assert [each.id.split("/")[0] for each in found[:12]] == [kind for kind in KINDS for _ in LANGUAGES]
    assert [*found[12:]] == [trap for trap in scenario("traps") if trap.id != ENORMOUS]
    assert all(trap.meta["trap"] for trap in found[12:])


def test_twins_and_traps_are_one_unit() -> None:
    """A generator's conversations are alike in any language, and traps are one list; `questions` were written one by
    one."""
    units_of = {
        "standard": {f"{kind}-{seed}" for kind in KINDS for seed in range(8)},
        "smoke": {*(f"{kind}-0" for kind in KINDS), "traps"},
        "questions": {each.id for each in scenario("questions")},
        "sessions": {f"coding-{seed}" for seed in range(8, 28)},
        "load": {"load-0"},
        "mem_001": {"mem_001"},
    }
    for name, units in units_of.items():
        metas = {each.id: each.meta for each in scenario(name)}
        assert set(independent_units(metas).values()) == units


def test_sessions_belong_to_the_one_that_started_them() -> None:
    """By `meta["parent"]`, read or not, or by the id before a slash; a circle is one; a unit that is named wins."""
    metas = {
        "s": {}, "s/agent": {}, "s/agent/deeper": {}, "fork": {"parent": "s"}, "of fork": {"parent": "fork"},
        "one": {"parent": "not read"}, "two": {"parent": "not read"}, "round": {"parent": "trip"},
        "trip": {"parent": "round"}, "lone/some": {}, "mine": {"parent": "s", "unit": 7},
    }  # fmt: skip
    assert independent_units(metas) == {
        **dict.fromkeys(("s", "s/agent", "s/agent/deeper", "fork", "of fork"), "s"),
        **dict.fromkeys(("one", "two"), "not read"),
        **dict.fromkeys(("round", "trip"), "round"),
        "lone/some": "lone/some",
        "mine": "7",
    }


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("standart", "did you mean 'standard'"),
        ("traps(conversations=9)", "traps is recorded: only load, mem_001, mem_002 take parameters"),
        ("load(turns=0)", "turns must be at least 1 and at most 100000, not 0"),
        ("load(turn=3)", "has no parameter 'turn'; it takes turns, seed, conversations; did you mean 'turns'"),
    ],
)
def test_what_cannot_be_is_refused_at_once(name: str, message: str) -> None:
    """A misspelt name, numbers for what is recorded, and none at all."""
    with pytest.raises(SpecError, match=message):
        named_scenario(name)


def test_every_scenario_says_what_it_is() -> None:
    """Each name has a line for `ctxbench list scenarios`."""
    assert set(SCENARIOS) == {*DIGESTS, *KINDS, *GENERATED}
    assert all(line and "\n" not in line for line in SCENARIOS.values())
