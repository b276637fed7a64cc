"""Fits the constants of `metrics/grading/rules/`, on halves of EVOUNA-NQ and HalluQA, and prints them.

    python -m tests.metrics.grading.fit_rules FOLDER        # of the sample recordings

Every question belongs to a half by a hash of its text, so that no question is in both. Only the first halves are fitted
on. Dates and numbers are fitted on EVOUNA-NQ alone, the rest on both.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from ctxbench.metrics.grading.rules import features, half
from ctxbench.metrics.grading.rules.match import Gold, ParsedAnswer, date_order, match, number_order, read_gold
from ctxbench.scenarios.labelled import Labelled, read
from ctxbench.scenarios.source import Problems


def halves(path: Path) -> tuple[list[Labelled], list[Labelled]]:
    """Return the answers of a file, by half."""
    found = list(read([path], Problems(strict=True)))
    return [each for each in found if not half(each.question)], [each for each in found if half(each.question)]


def shares(answers: Iterable[Labelled], form: str) -> dict[int, tuple[float, int]]:
    """How often people found right what agrees so well, and how many such answers there are, if all golds are such."""
    order = {"date": date_order, "number": number_order}[form]
    seen: dict[int, list[bool]] = defaultdict(list)
    for each in answers:
        golds = [read_gold(text, each.question) for text in each.accepted]
        if all(gold.form == form for gold in golds):
            answer = ParsedAnswer(each.candidate)
            seen[max(order(gold, answer) for gold in golds)].append(each.correct)
    return {at: (sum(found) / len(found), len(found)) for at, found in sorted(seen.items(), reverse=True)}


def table(answers: Iterable[Labelled]) -> tuple[list[dict[str, float]], list[bool]]:
    """Return the features of the best accepted answer where only names and phrases are accepted, and the labels."""
    rows, labels = [], []
    for each in answers:
        golds = [read_gold(text, each.question) for text in each.accepted]
        if any(gold.form not in ("name", "phrase") for gold in golds):
            continue
        answer = ParsedAnswer(each.candidate)
        rows.append(max((_row(gold, answer) for gold in golds), key=_closeness))
        labels.append(each.correct)
    return rows, labels


def _closeness(row: dict[str, float]) -> tuple[float, float]:
    return row["whole"], row["fresh"] + row["share"] + 0.3 * (row["denies_too"] - row["denial_missed"])


def _row(gold: Gold, answer: ParsedAnswer) -> dict[str, float]:
    return features(gold, match(gold, answer), answer)


def main(folder: Path) -> None:
    import numpy as np
    from sklearn.linear_model import LogisticRegression

    evouna, _ = halves(folder / "evouna" / "NQ.json")
    halluqa, _ = halves(folder / "halluqa-zh" / "HalluQA.json")
    for form in ("date", "number"):
        print(f"{form}s:", {at: f"{share:.3f} of {size}" for at, (share, size) in shares(evouna, form).items()})
    rows, labels = table([*evouna, *halluqa])
    names = list(rows[0])
    values = np.array([[row[name] for name in names] for row in rows])
    model = LogisticRegression(C=1.0, max_iter=1000).fit(values, labels)
    print(f"{len(rows)} answers to names and phrases")
    print("WEIGHTS =", {name: round(float(weight), 2) for name, weight in zip(names, model.coef_[0], strict=True)})
    print("BIAS =", round(float(model.intercept_[0]), 2))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
