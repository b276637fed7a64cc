"""Invented papers: their facts, and the passages that the search and the reader show."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from random import Random

from ..wording import one, say
from . import text_en, text_zh
from .authors import JOURNALS, NAMES_ZH, SURNAMES
from .words import Field, Moderator, Outcome


def tidy(text: str) -> str:
    """Without the gaps that an empty unit leaves, and one mark at the end of a title that asks."""
    return (
        _GAP.sub(r"\1", text).replace("  ", " ").replace(" %", "%").replace("?.", "?").replace("\uff1f\u3002", "\uff1f")
    )


_GAP = re.compile(r" +([,.;:)])")


@dataclass
class Topic:
    """One side of the question: an outcome and what it depends on. It is left and returned to."""

    outcome: Outcome
    moderator: Moderator
    name: str
    papers: list[Paper] = field(default_factory=list)
    opened: list[Paper] = field(default_factory=list)
    last: int = 0
    """The turn in which it was talked about last."""


@dataclass
class Paper:
    """A study. `facts` holds everything that its texts say, ready to print."""

    id: str
    label: str
    year: int
    sample: int
    effect: float
    """Signed; 0 = no effect found."""
    facts: dict[str, str]
    shown: str = ""
    """The message that showed it whole."""


class Library:
    """Where papers come from; keeps ids and labels unique."""

    def __init__(self, rng: Random, area: Field, chinese: bool) -> None:
        self._rng, self._area, self._at = rng, area, int(chinese)
        self._texts: dict[str, tuple[str, ...]] = (text_zh if chinese else text_en).PAPER
        self._labels: set[str] = set()
        self._number = 1000 + int(rng.random() * 5000)
        self._shelf = one(rng, ("hx", "qv", "lr", "ob", "tk"))

    def paper(self, topic: Topic) -> Paper:
        """A new study on the topic."""
        rng, at = self._rng, self._at
        self._number += 1 + int(rng.random() * 9)
        first, second, year = self._authors()
        outcome, moderator = topic.outcome, topic.moderator
        size = outcome.low + rng.random() * (outcome.high - outcome.low)
        sign = 0 if (luck := rng.random()) < 0.2 else -1 if luck < 0.32 else 1
        effect = round(sign * size * (-1 if outcome.falls else 1), 1)
        spread = round(size * (0.2 + 0.9 * rng.random()) + 0.1, 1)
        found = abs(effect) if sign else round(spread * 0.7 * rng.random() + 0.1, 1)
        cut = moderator.low + int(rng.random() * (moderator.high - moderator.low + 1))
        sample = 24 + int(rng.expovariate(1 / 190))
        sure = found > spread
        other = one(rng, [each for each in self._area.outcomes if each is not outcome])
        number = f"{self._number}"
        facts = {
            "id": f"{self._shelf}-{number}",
            "first": first,
            "second": second,
            "year": str(year),
            "journal": one(rng, JOURNALS)[at],
            "pages": f"{20 + int(rng.random() * 700)}",
            "treatment": one(rng, self._area.treatments)[at],
            "outcome": outcome.name[at],
            "unit": outcome.unit[at],
            "moderator": moderator.name[at],
            "munit": moderator.unit[at],
            "cut": str(cut),
            "n": str(sample),
            "units": self._area.units[at],
            "sites": str(3 + int(rng.random() * 22)),
            "place": one(rng, self._area.places)[at],
            "mechanism": one(rng, self._area.mechanisms)[at],
            "instrument": one(rng, self._area.instruments)[at],
            "effect": f"{found:.1f}",
            "low": f"{found - spread:.1f}",
            "high": f"{found + spread:.1f}",
            "spread": f"{spread:.1f}",
            "lower": self._word("lower" if effect < 0 else "higher"),
            "below": f"{found * (0.2 + 0.4 * rng.random()):.1f}",
            "above": f"{found * (1.1 + 0.6 * rng.random()):.1f}",
            "other": other.name[at],
            "other_effect": f"{other.low + rng.random() * (other.high - other.low):.1f}",
            "other_unit": other.unit[at],
            "dropout": str(3 + int(rng.random() * 33)),
            "months": str(3 + int(rng.random() * 30)),
            "controls": str(12 + int(sample * (0.3 + 0.5 * rng.random()))),
            "p": f"0.{(1 if sure else 60) + int(rng.random() * (44 if sure else 700)):03d}",
            "share": str(21 + int(rng.random() * 60)),
            "start": str(year - 3 - int(rng.random() * 3)),
            "between": f"0.{10 + int(rng.random() * 80)}",
        }
        facts["label"] = say(rng, self._texts["label"][0], facts)
        facts["title"] = say(rng, one(rng, self._texts["title"]), facts)
        return Paper(facts["id"], facts["label"], year, sample, effect, facts)

    def abstract(self, paper: Paper) -> str:
        """The passage that a search shows, some 700–1100 characters of English."""
        return "\n".join([self._say(paper, "head"), self._passage(paper)])

    def whole(self, paper: Paper) -> str:
        """What opening the paper shows: sections with findings, a table of subgroups, limits."""
        sections = ["aims", "method", "results", "subgroups", "course", "robust", "why", "limits"]
        parts = [self._say(paper, "head")]
        for key in sections:
            title = self._say(paper, f"{key}_title")
            body = self._section(paper, key)
            table = self._places(paper) if key == "subgroups" else self._periods(paper) if key == "course" else ""
            parts.append(f"## {title}\n\n{body}" + (f"\n\n{table}" if table else ""))
        return "\n\n".join(parts)

    def _passage(self, paper: Paper) -> str:
        parts = [self._section(paper, "abstract"), self._finding(paper), self._say(paper, "end")]
        return self._texts["space"][0].join(parts)

    def _section(self, paper: Paper, key: str) -> str:
        forms = self._texts[key]
        count = len(forms) if key != "abstract" else 4
        texts = [tidy(say(self._rng, form, paper.facts)) for form in self._rng.sample(forms, count)]
        if key == "results":
            texts.insert(0, self._finding(paper))
        gap = self._texts["space"][0]
        half = (len(texts) + 1) // 2
        return gap.join(texts) if len(texts) < 5 else f"{gap.join(texts[:half])}\n\n{gap.join(texts[half:])}"

    def _finding(self, paper: Paper) -> str:
        return self._say(paper, "found" if paper.effect else "null")

    def _places(self, paper: Paper) -> str:
        rng, facts = self._rng, paper.facts
        lines = [self._say(paper, "table_head")]
        left, middle = int(facts["n"]), float(facts["effect"])
        for place in rng.sample(self._area.places, len(self._area.places)):
            here = max(4, int(left * (0.1 + 0.3 * rng.random())))
            mean = middle * (0.4 + 1.2 * rng.random()) + 0.1
            wide = 0.2 + mean * rng.random()
            row = f"{place[self._at]} | {here} | {mean:.2f} | [{mean - wide:.2f}, {mean + wide:.2f}] | "
            typical = int(facts["cut"]) * (0.5 + rng.random())
            typical = min(typical, 97) if facts["munit"] in ("%", "percent") else typical
            lines.append(tidy(row + f"{typical:.0f} {facts['munit']}").rstrip())
        return "\n".join(lines)

    def _periods(self, paper: Paper) -> str:
        rng, facts = self._rng, paper.facts
        lines, left = [self._say(paper, "course_head")], int(facts["n"])
        months, effect = int(facts["months"]), float(facts["effect"])
        for at in range(1, 5):
            mean = effect * (0.1 + 0.35 * at) * (0.8 + 0.4 * rng.random())
            row = f"{months * (at - 1) // 4 + 1}-{max(months * at // 4, 1)} | {left} | {mean:.2f} | "
            lines.append(
                row + f"{0.1 + mean * rng.random():.2f} | {float(facts['other_effect']) * rng.random() * 2:.1f}"
            )
            left -= int(left * int(facts["dropout"]) / 400)
        return "\n".join(lines)

    def _say(self, paper: Paper, key: str) -> str:
        return tidy(say(self._rng, one(self._rng, self._texts[key]), paper.facts))

    def _word(self, key: str) -> str:
        return self._texts[key][0]

    def _authors(self) -> tuple[str, str, int]:
        while True:
            first, second = self._rng.sample(NAMES_ZH if self._at else SURNAMES, 2)
            year = 2003 + int(self._rng.random() * 22)
            key = f"{first}/{second}/{year}"
            if key not in self._labels:
                self._labels.add(key)
                return first, second, year
