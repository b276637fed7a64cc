"""Store profiles: the figures and counts of a grader's calibration, without any text of the labelled set."""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

import msgspec

from ctxbench.metrics.grading.agreement import Agreement, Estimate, Known, corrected
from ctxbench.metrics.value import Missing
from ctxbench.scenarios.errors import RunError, UserError
from ctxbench.scenarios.files import cache_folder, read_file

from ..folder.files import write_file


class LabelSample(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How some answers were chosen from a set."""

    answers: int
    of: int
    seed: int
    by_system: bool = False  # as many of each system, as far as there are enough


class GraderUsage(msgspec.Struct, forbid_unknown_fields=True):
    """The usage of all model calls of a grader, replayed or not, at today's prices: the same in every run."""

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    dollars: float = 0.0
    unpriced: int = 0  # calls whose price is not known: they are not in the dollars

    def add(self, input_tokens: int, output_tokens: int = 0, cost: float | None = 0.0) -> None:
        """Count one more answered call."""
        self.calls += 1
        self.input_tokens += input_tokens
        self.output_tokens += output_tokens
        self.dollars += cost or 0.0
        self.unpriced += cost is None


class BesidePeople(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Agreement of two people, and of the grader with one of them, over the answers that have several labels.

    Both are over single labels, so that they compare: what people disagree about, no grader can get right.
    """

    answers: int
    people: Estimate  # Kappa of the labels among themselves (Fleiss')
    grader: Estimate  # Cohen's kappa of the grader with single labels
    people_same: float  # share of pairs of labels that are the same
    grader_same: float  # share of labels that the grader's verdict equals


class Profile(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The agreement of a grader with the labels of one set."""

    grader: str  # the grader's name, with everything that its grades depend on
    set: str
    digest: str  # digest of the whole labelled set
    labelled_by: str  # `people`, `model`, or `people and model`
    sample: LabelSample | None = None  # how the answers were chosen, if not all were graded
    asked: int  # number of answers that the grader was given
    missing: dict[str, int]
    """Answers without a grade, by reason. They count in no other figure."""
    whole: Agreement
    held_out: Agreement | None = None
    """Agreement on the answers that the grader was not fitted on; None if it was fitted on none of this set."""
    by: dict[str, dict[str, Agreement]]
    """Agreement by language, kind of question, system, or kind of answer (`answer`), where there are several."""
    people: dict[str, dict[str, BesidePeople]] = {}
    """People among themselves and the grader, by the same groups and as a whole (`all`), where answers have several
    labels."""
    less_exact: int = 0  # answers called wrong since their date, which fits, is less exact than the accepted one
    cost: GraderUsage | None = None  # None = the grader asks no model

    @property
    def quoted(self) -> Agreement:
        """The agreement that is quoted elsewhere: without answers that the grader was fitted on."""
        return self.held_out or self.whole

    @property
    def language(self) -> str:
        """Language of the answers; that of a set of ours which has one language is in its name."""
        return next(iter(self.by.get("language", ())), "zh" if "zh" in self.set else "en")

    @property
    def graded(self) -> int:
        """Number of answers with a grade."""
        return self.whole.answers


def corrected_by(profile: Profile, share: float, answers: float) -> Estimate:
    """Return the share of right answers where the grader calls `share` of `answers` right
    (`metrics/grading/correction.py`).

    Where `answers` are not independent, give the number that they are worth.
    """
    rates = Known.of(profile.quoted)
    return Estimate(rates, rates) if isinstance(rates, Missing) else corrected(share, answers, rates)


SHIPPED = Path(__file__).parent / "shipped"
"""Profiles of the graders whose grades come with ctxbench: `rules`, and `logit` with the local model."""

# What of a grader's name tells its versions apart: `rules(1)`, `llm(model='…', prompt='…')`, `name@digest`.
_VERSION = re.compile(r"\(\d+\)$|(?:, )?\bprompt='[0-9a-f]*'|@[0-9a-f]+\b")


class QuotedProfile(NamedTuple):
    """A profile, and why it may not hold."""

    profile: Profile
    stale: str = ""  # empty if the profile is of the very grader that was asked for


class Profiles:
    """All profiles of some folders. Raises RunError for a file that is no profile."""

    def __init__(self, folders: Sequence[Path] = ()) -> None:
        profiles: dict[tuple[str, str, bool], Profile] = {}
        # The user's folder comes before ours: a grader calibrated again is quoted by that.
        every = folders or (*user_folders(), SHIPPED)
        for path in (path for folder in every for path in sorted(folder.glob("*.json"))):
            try:
                profile = msgspec.json.decode(read_file(path), type=Profile)
            except OSError as error:
                raise RunError(f"{path}: cannot be read: {error.strerror or error}") from None
            except msgspec.ValidationError:
                what = "left out, as another version of ctxbench wrote it: remove it, or calibrate the grader again"
                logging.getLogger(__name__).warning("%s: %s", path, what)
                continue
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                raise RunError(f"{path}: is no profile of a grader ({error}): remove it") from None
            profiles.setdefault((profile.grader, profile.set, profile.sample is None), profile)
        self.all = tuple(profiles.values())

    def of(self, grader: str) -> list[QuotedProfile]:
        """Return the grader's profiles, the best first; without any, those of its other versions.

        Of several on the same answers only the best: no sample stands beside the whole.
        """
        quoted = [QuotedProfile(profile) for profile in self.all if profile.grader == grader] or [
            QuotedProfile(profile, f"measured on {profile.grader}, not {grader}")
            for profile in self.all
            if unversioned(profile.grader) == unversioned(grader)
        ]

        def rank(quote: QuotedProfile) -> tuple[bool, int, str]:
            profile = quote.profile
            # People's labels before a model's, then the most answers. False sorts first.
            return profile.labelled_by != "people", -profile.graded, profile.set

        best: dict[tuple[str, str], QuotedProfile] = {}
        for quote in sorted(quoted, key=rank):
            best.setdefault((quote.profile.grader, quote.profile.set), quote)
        return list(best.values())


def user_folder() -> Path:
    """Return the folder where `ctxbench lab calibrate` stores profiles. Raises UserError for a user without a home."""
    return cache_folder() / "profiles"


def user_folders() -> list[Path]:
    """Return the folder of the user's profiles; none for a user without a home."""
    with suppress(UserError):
        return [user_folder()]
    return []


def keep(profile: Profile, folder: Path) -> Path:
    """Write a profile in place of an older one of the same grader and set, or sample of it. Raises RunError.

    The file's name is readable, and differs by grader, set, and for a sample; its bytes are the same for the same
    figures.
    """
    part = ["sample"] * (profile.sample is not None)
    words = re.sub(r"[^A-Za-z0-9]+", "-", " ".join([unversioned(profile.grader), profile.set, *part]))
    digest = sha256("\0".join([profile.grader, profile.set, *part]).encode()).hexdigest()[:8]
    path = folder / f"{words.strip('-').lower()[:80]}-{digest}.json"
    write_file(path, msgspec.json.format(msgspec.json.encode(profile), indent=1) + b"\n")
    return path


def unversioned(grader: str) -> str:
    """Return the grader's name without what tells its versions apart."""
    return _VERSION.sub("", grader)
