"""Answers that are wrong by construction, and how many of them the grader `rules` accepts.

    python -m tests.metrics.grading.wrong_answers FOLDER        # of the sample recordings

From LoCoMo's questions: the answers to other questions of the same conversation and category, days nearby, and dates
cut to their month or year. From LoCoMo, EVOUNA-NQ and the embedded scenarios: answers that name the accepted one
without asserting it, in the wording of the attacks of `calibrate` and in that of OTHERS. Every figure is printed by
half: conversations, and questions of EVOUNA, are split.
"""

import json
import random
import re
import sys
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from datetime import date, timedelta
from pathlib import Path
from typing import NamedTuple

from ctxbench.metrics.grading import Grade, GradedItem
from ctxbench.metrics.grading.rules import RulesGrader, half
from ctxbench.scenarios.embedded import scenario
from ctxbench.scenarios.labelled import read
from ctxbench.scenarios.source import Problems
from tests.harness.graders.attacks import NAMING

OTHERS = tuple(
    (language, wording)
    for language, wordings in tomllib.loads(Path(__file__).with_name("other_wordings.toml").read_text("utf-8")).items()
    for wording in wordings
)
"""More wordings by language. Rules have been changed by them since they were made, so they are not unseen."""
SEEN = tuple(
    (
        "zh" if attack.name.startswith("chinese") else "en",
        attack.template.replace("$gold", "{gold}").replace("$text", "{other}"),
    )
    for attack in NAMING
)
MONTHS = [date(2000, month, 1).strftime("%B") for month in range(1, 13)]
_DAY = re.compile(rf"(\d{{1,2}}),? ({'|'.join(MONTHS)}),? (\d{{4}})", re.IGNORECASE)
_MONTH = re.compile(rf"({'|'.join(MONTHS)}),? (\d{{4}})", re.IGNORECASE)
_HAN = re.compile("[\u4e00-\u9fff]")


class Wrong(NamedTuple):
    """A wrong answer to a question."""

    half: int
    kind: str
    question: str
    gold: str
    answer: str
    other: str = ""
    """The answer that it asserts instead of the accepted one."""


def from_locomo(folder: Path) -> Iterator[Wrong]:
    """Yield other answers of the same conversation, neighbouring days, and vague dates."""
    draw = random.Random(5)
    for at, conversation in enumerate(json.loads((folder / "locomo" / "data" / "locomo10.json").read_text())):
        for category, asked in _asked(conversation).items():
            for question, gold in asked:
                others = [other for _, other in asked if _apart(gold, other)]
                for other in draw.sample(others, min(3, len(others))):
                    yield Wrong(at % 2, f"specific, category {category}", question, gold, other)
                if category == 2:
                    yield from (Wrong(at % 2, "vague", question, gold, each) for each in vague(gold))
                    yield from (Wrong(at % 2, "day nearby", question, gold, each) for each in nearby(gold))


def _asked(conversation: dict[str, list[dict[str, object]]]) -> dict[int, list[tuple[str, str]]]:
    by: dict[int, list[tuple[str, str]]] = defaultdict(list)
    for each in conversation["qa"]:
        if each["category"] in (1, 2, 3, 4) and "answer" in each:
            by[int(str(each["category"]))].append((str(each["question"]), str(each["answer"])))
    return by


def _apart(one: str, other: str) -> bool:
    return one.lower() not in other.lower() and other.lower() not in one.lower()


def vague(gold: str) -> list[str]:
    """Return a date cut to its month or year, or to its month without the year."""
    if day := _DAY.search(gold):
        month, year = day[2].capitalize(), day[3]
        forms = [f"In {year}", f"In {month}", f"{month} {year}", year, f"Sometime in {month}.", f"{year}年"]
        return [*forms, f"{MONTHS.index(month) + 1}月"]
    if month_only := _MONTH.search(gold):
        return [f"In {month_only[2]}", month_only[2], f"Sometime in {month_only[2]}."]
    return []


def nearby(gold: str) -> list[str]:
    """Return other days for an accepted one."""
    day = _DAY.fullmatch(gold.strip())
    if day is None:
        return []
    accepted = date(int(day[3]), MONTHS.index(day[2].capitalize()) + 1, int(day[1]))
    days = [accepted + timedelta(step) for step in (-7, -1, 1, 14, 30, 365)]
    return [f"{each.day} {each:%B} {each.year}" for each in days]


# Questions for a value that has changed since: "Formerly X, now Y" is right there.
_FORMER = re.compile(
    "before|first|used to|original|initially|in the beginning|in the early|at the outset|"
    "had .* (?:meant|planned|accepted)|"
    "没改|之前|起先|起初|原|本来|本该|刚开始|最初|最早|推迟以前|以为",
    re.IGNORECASE,
)
_YES_NO = {"yes", "no"}


def _is_wrong(question: str, gold: str, other: str) -> bool:
    """Return whether an answer that moves from the gold to another one is wrong, and the other one an answer at all.

    It is none where it stands in the question, or is a bare yes or no beside a gold of another kind.
    """
    is_bare = (other.lower() in _YES_NO) != (gold.lower() in _YES_NO)
    return not (_FORMER.search(question) or other in question or is_bare)


def doubted(folder: Path, wordings: Iterable[tuple[str, str]], kind: str) -> Iterator[Wrong]:
    """Yield answers that name the accepted answer and assert another one, or name somebody else by it."""
    subjects = [subject for subject in _subjects(folder) if _is_wrong(*subject[2:])]
    for language, wording in wordings:
        for at, of, question, gold, other in subjects:
            if of == language:
                answer = wording.format(gold=gold.rstrip("."), other=other.rstrip("."))
                yield Wrong(at, f"{kind}, {language}", question, gold, answer, other)


def _subjects(folder: Path) -> Iterator[tuple[int, str, str, str, str]]:
    draw = random.Random(7)
    for at, conversation in enumerate(json.loads((folder / "locomo" / "data" / "locomo10.json").read_text())):
        for category, asked in _asked(conversation).items():
            short = [(question, gold) for question, gold in asked if len(gold) < 60 and category != 3]
            for question, gold in draw.sample(short, min(4, len(short))):
                yield at % 2, "en", question, gold, draw.choice([other for _, other in short if _apart(gold, other)])
    golds = {each.question: each.accepted[0] for each in read([folder / "evouna" / "NQ.json"], Problems())}
    for question in draw.sample(sorted(golds), 120):
        yield half(question), "en", question, golds[question], draw.choice(sorted(golds.values()))
    for at, conversation in enumerate(scenario("standard")):
        probes = [probe for probe in conversation.probes if probe.answers and _HAN.search(probe.question)]
        for probe in probes:
            same = [each.answers[0] for each in probes if each.category == probe.category]
            others = [other for other in same if all(_apart(other, gold) for gold in probe.answers)]
            if others:
                yield at % 2, "zh", probe.question, probe.answers[0], draw.choice(others)


def accepted(answers: Iterable[Wrong]) -> tuple[Counter[tuple[str, int]], Counter[tuple[str, int]], list[Wrong]]:
    """Return how many of each kind and half there are, how many are accepted, and which.

    Left out are answers that assert something which is right by itself.
    """
    every = list(answers)
    grades, others = _grades(every, "answer"), _grades(every, "other")
    sizes: Counter[tuple[str, int]] = Counter()
    taken: Counter[tuple[str, int]] = Counter()
    flips = []
    for wrong, grade, other in zip(every, grades, others, strict=True):
        if not other:
            sizes[wrong.kind, wrong.half] += 1
            taken[wrong.kind, wrong.half] += grade
            flips += [wrong] * grade
    return sizes, taken, flips


def _grades(answers: list[Wrong], field: str) -> list[bool]:
    items = [
        GradedItem(str(at), each.question, (each.gold,), getattr(each, field), exact_dates=True)
        for at, each in enumerate(answers)
    ]
    return [isinstance(grade, Grade) and grade.correct for grade in RulesGrader().grade(items)]


def main(folder: Path) -> None:
    sizes, taken, _ = accepted(
        [*from_locomo(folder), *doubted(folder, SEEN, "attacks"), *doubted(folder, OTHERS, "other wording")]
    )
    for kind, at in sorted(sizes):
        print(f"{kind}, half {at}: {taken[kind, at]} of {sizes[kind, at]} = {taken[kind, at] / sizes[kind, at]:.1%}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
