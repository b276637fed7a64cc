"""Facts that survive rounds of summarising, and what a summariser was shown."""

from collections import Counter
from itertools import chain, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxbench.metrics.language import words
from ctxbench.metrics.survival import (
    SHARE,
    FollowedFact,
    FollowedFacts,
    Round,
    Survival,
    cliff,
    facts_in,
    shown,
    shown_share,
    survival,
)
from ctxbench.metrics.value import Missing
from ctxbench.metrics.values import occurs

Summaries = list[tuple[list[str], str]]
"""The texts that each summary newly replaces, and the summary."""


def followed(said: Summaries) -> list[Survival]:
    """Follow the facts of the texts through the summaries."""
    facts = FollowedFacts({text: facts_in(text) for texts, _ in said for text in texts})
    return survival([Round([at for text in texts for at in facts.of[text]], summary) for texts, summary in said], facts)


def of(kind: str, said: Summaries) -> list[tuple[int, int, int]]:
    """(age, values, kept) of one kind."""
    return [(age, values, kept) for name, age, values, kept in followed(said) if name == kind]


def test_survival_by_hand() -> None:
    """Three identifiers enter at round 0 and one at round 1; each is counted at every age that it reached."""
    rounds = [
        (["AB-1 and AB-2", "AB-3"], "AB-1, AB-2"),  # AB-3 is lost at once
        (["CD-4"], "AB-1, CD-4"),  # AB-2 at age 1
        ([], "AB-1"),  # CD-4 at age 1
    ]
    assert of("identifier", rounds) == [(0, 4, 3), (1, 4, 1), (2, 3, 1)]


def test_said_again_enters_anew() -> None:
    """A fact that is replaced again is followed from there; what it was before is followed no further."""
    rounds = [(["AB-1"], "nothing"), (["AB-1"], "AB-1"), ([], "AB-1")]
    assert of("identifier", rounds) == [(0, 2, 1), (1, 1, 1)]


def test_gone_stays_gone() -> None:
    """A value that a later summary hits upon by chance has not survived."""
    rounds = [(["AB-1"], "-"), ([], "AB-1"), ([], "AB-1")]
    assert of("identifier", rounds) == [(0, 1, 0), (1, 1, 0), (2, 1, 0)]


def test_numbers_survive_without_their_units() -> None:
    """$4,500 survives as 4500 EUR; 3 bags do not survive as 13."""
    rounds = [(["$4,500 and 3 bags"], "4500 EUR, 13")]
    assert of("number", rounds) == [(0, 2, 1)]


@pytest.mark.parametrize(
    ("sentence", "summary", "kept"),
    [
        ("We decided on Postgres for order AB-1.", "Decided: Postgres, order AB-1", 1),
        ("We decided on Postgres for order AB-1.", "Decided: Postgres, order AB-2", 0),  # not its value
        ("We decided on Postgres for order AB-1.", "AB-1", 0),  # its value alone says nothing
        ("我们决定用方案甲部署服务器。", "决定：方案甲部署服务器", 1),
        ("我们决定用方案甲部署服务器。", "服务器", 0),
    ],
)
def test_decisions(sentence: str, summary: str, kept: int) -> None:
    """A decision survives with all its values and most of its words."""
    assert of("decision", [([sentence], summary)]) == [(0, 1, kept)]


def test_a_fact_over_some_lines() -> None:
    """Its parts may stand in several lines, and move to others."""
    sentence, parts = "We decided on Postgres for order AB-1.", ["Decided: Postgres", "order AB-1"]
    summaries = ["\n".join(parts), "\n".join(["-", *reversed(parts)]), " ".join(parts), parts[0]]
    rounds = [([sentence] * (at == 0), summary) for at, summary in enumerate(summaries)]
    assert of("decision", rounds) == [(0, 1, 1), (1, 1, 1), (2, 1, 1), (3, 1, 0)]


def test_cliff() -> None:
    """The cliff is the first age with fewer than half left, over all rows of an age; half itself is none."""
    rows = [
        Survival("number", 0, 4, 4),
        Survival("date", 0, 4, 0),
        Survival("number", 1, 4, 1),
        Survival("date", 1, 2, 1),
    ]
    assert cliff(rows) == 1
    assert cliff(rows[:2]) == Missing("undefined", "half or more survive 0 rounds, the most there are")
    assert cliff([]) == Missing("undefined", "no facts were replaced")


WORDS = [
    "AB-1",
    "AB-2",
    "$45.50",
    "45.50",
    "2024-05-01",
    "Ana",
    "we agreed on it.",
    "must not",
    "we chose Postgres",
    "\n",
]
TEXT = st.lists(st.sampled_from(WORDS), max_size=4).map(" ".join)


@given(st.lists(st.tuples(st.lists(TEXT, max_size=3), TEXT), max_size=6))
def test_laws(said: Summaries) -> None:
    """Fewer are followed and fewer are left at every age; summaries that repeat all there was lose nothing."""
    found = followed(said)
    for one, other in pairwise(found):
        if one.kind == other.kind:
            assert other.age == one.age + 1
            assert other.values <= one.values
            assert other.kept <= one.kept
    assert all(row.kept <= row.values for row in found)
    everything = "\n".join(text for texts, _ in said for text in texts)
    perfect = [(texts, everything) for texts, _ in said]
    assert all(row.kept == row.values for row in followed(perfect))


@given(st.lists(st.tuples(st.lists(TEXT, max_size=3), TEXT | st.just("Postgres と AB-1\nまた")), max_size=6))
def test_as_followed_plainly(said: Summaries) -> None:
    """Following each fact from round to round, in the text of each summary, counts the same."""
    replaced, slow = [set(chain.from_iterable(map(facts_in, texts))) for texts, _ in said], Counter[tuple[str, int]]()
    for fact in set[FollowedFact]().union(*replaced):
        entered = [at for at, facts in enumerate(replaced) if fact in facts]
        for start, stop in pairwise([*entered, len(said)]):
            for at in range(start, stop):
                summary = said[at][1]
                has_values = all(any(occurs(each, summary) for each in value) for value in fact.values)
                if not (has_values and len(fact.words & set(words(summary))) >= SHARE * len(fact.words)):
                    break
                slow[fact.kind, at - start] += 1
    assert {(kind, age): kept for kind, age, _, kept in followed(said) if kept} == dict(slow)


def test_shown() -> None:
    """A text counts whole where the material has it whole, by its start where it is cut there, else not at all."""
    about = ["one two three", "four five six seven eight nine ten", "a short start of something unseen"]
    material = ["earlier summary", "User: one two three", "Assistant: four five six seven eight nin…", "a short"]
    assert shown(about, material, lambda text: len(text.split())) == 3 + 6
    assert shown([], material, len) == 0


def test_shown_share() -> None:
    """Two calls that stand for 100 tokens each, one shown 26 of them, one shown more than it stands for."""
    assert shown_share([(100, 26), (100, 130)]) == 0.63
    assert shown_share([]) == Missing("undefined", "no messages were summarised")
