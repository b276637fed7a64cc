"""The research scenario: topics return, criteria change, and every number that is asked for was shown."""

from __future__ import annotations

import json
import re

import pytest

from ctxbench.scenarios.embedded.research import make
from ctxbench.scenarios.embedded.research.library import Field, load_language
from ctxbench.scenarios.model import Conversation

CASES = [(seed, language) for seed in range(4) for language in ("en", "zh")]
CJK = re.compile(r"[\u3400-\u9fff]")


def topics(conversation: Conversation) -> list[str]:
    """The topic of each search, in order."""
    queries = [json.loads(c.arguments)["query"] for m in conversation.messages for c in m.calls if "search" in c.name]
    heads = [query for query in queries if not any(query != other and query.startswith(other) for other in queries)]
    return [next(head for head in heads if query.startswith(head)) for query in queries]


@pytest.mark.parametrize(("seed", "language"), CASES)
def test_size(seed: int, language: str) -> None:
    """Twelve turns have some 30 000 to 50 000 tokens: a Chinese character is about 0.7, an English one 0.23."""
    size = sum(len(m.text) for m in make(seed, 12, language).messages)
    assert 30_000 < size * (0.7 if language == "zh" else 0.23) < 55_000


@pytest.mark.parametrize(("seed", "language"), CASES)
def test_updates(seed: int, language: str) -> None:
    """The gold for a criterion or hypothesis is the value of the last note about it before the question."""
    conversation = make(seed, 80, language)
    words = load_language(language)
    place = {m.id: index for index, m in enumerate(conversation.messages)}
    rules = [rule.name for rule in words.criteria]
    updates = [probe for probe in conversation.probes if probe.category == "updated_fact"]
    assert updates
    for probe in updates:
        notes = [m.text for m in conversation.messages[: place[probe.after]] if m.name == "take_note"]
        about = [rule for rule in rules if rule in probe.question] or [
            name for field in words.fields for name in topic_words(field) if name in probe.question
        ]
        said = [text for text in notes if all(name in text for name in about)]
        said = [text for text in said if re.search("Protocol|Criterion|Hypothesis|方案|标准|假设", text)]
        assert probe.answers[0] in said[-1]


def topic_words(field: Field) -> list[str]:
    return [outcome.name for outcome in field.outcomes] + [moderator.name for moderator in field.moderators]


@pytest.mark.parametrize(("seed", "language"), CASES)
def test_topics_return(seed: int, language: str) -> None:
    """In twelve turns a topic comes back after others were searched for."""
    seen = topics(make(seed, 12, language))
    assert len(set(seen)) >= 3
    returns = [at for at, topic in enumerate(seen) if topic in seen[:at] and seen[at - 1] != topic]
    assert returns
    said = [m.text for m in make(seed, 12, language).messages if m.role == "user"]
    topic = seen[returns[0]]
    assert sum(topic in text for text in said) >= 1


@pytest.mark.parametrize(("seed", "language"), CASES)
def test_papers_do_not_change(seed: int, language: str) -> None:
    """A paper that is shown more than once has the same heading, and so the same authors, year and pages."""
    heads: dict[str, set[str]] = {}
    for message in make(seed, 60, language).messages:
        if message.name in ("search_papers", "open_paper"):
            for line in message.text.splitlines():
                if found := re.match(r"\[(\w\w-\d+)\] ", line):
                    heads.setdefault(found[1], set()).add(line)
    assert len(heads) > 50
    assert all(len(lines) == 1 for lines in heads.values())


@pytest.mark.parametrize("seed", range(4))
def test_language(seed: int) -> None:
    """A Chinese conversation is Chinese throughout, papers included; an English one has no Chinese letters."""
    conversation = make(seed, 30, "zh")
    text = "\n".join(m.text for m in conversation.messages) + "\n".join(p.question for p in conversation.probes)
    assert not re.search(r"[A-Za-z]+ [A-Za-z]+ [A-Za-z]+", text)
    assert not re.search(r"[\u3400-\u9fff][,;:?!]", text)
    assert len(CJK.findall(text)) / len(re.sub(r"\s", "", text)) > 0.6
    english = make(seed, 30, "en")
    assert not CJK.search(english.to_json().decode())
    assert not [m.id for m in english.messages if re.search(r" [,.;]|  ", m.text)]


def test_same_keys() -> None:
    """Whatever can be said in one language can be said in the other."""
    english, chinese = load_language("en"), load_language("zh")
    assert english.speech.keys() == chinese.speech.keys()
    assert english.papers.keys() == chinese.papers.keys()
