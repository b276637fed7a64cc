"""Store profiles: the figures and counts of a grader's calibration, without any text of the labelled set."""

from __future__ import annotations

import re
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

import msgspec

from ctxbench.metrics.grading.agreement import Agreement, Estimate, Known, corrected
from ctxbench.metrics.statistics.intervals import Ends
from ctxbench.metrics.value import Missing, Value
from ctxbench.scenarios.errors import RunError
from ctxbench.scenarios.files import cache_folder, read_file

from ..folder.files import placed
from .labels import Sample

SCHEMA = 1
"""To be raised when an older profile would be read wrongly."""


class Threshold(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A threshold of the grader's scores, learned on one half of the questions and tried on the other.

    It is the one with the highest kappa. `own_…` is the grader's own verdict on the same other half. Everything is
    Missing if there is none.
    """

    threshold: Value
    learned_on: int
    """Number of answers."""
    tried_on: int
    accuracy: Estimate
    kappa: Estimate
    own_accuracy: Estimate
    own_kappa: Estimate


class Flips(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How often one attack got the verdict that it aims at."""

    attack: str
    tried: int
    flipped: int
    interval: Ends | Missing
    missing: int = 0
    """Attacked answers that were not graded."""


class Injection(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The effect of answers that speak to the grader (`harness/graders/attacks.py`)."""

    answers: int
    raised: tuple[int, int]
    """Attacks on answers graded wrong: tried, and turned to right."""
    lowered: tuple[int, int]
    """Attacks on answers graded right: tried, and turned to wrong."""
    missing: int
    share: Estimate
    """Share of attacks that turned the verdict; the interval is by question."""
    attacks: tuple[Flips, ...]


class Cost(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The usage and cost of the grader's model calls, replayed or not, at the prices of the bundled map."""

    calls: int
    input_tokens: int
    output_tokens: int
    dollars: float
    unpriced: int = 0
    """Calls whose price is not known: they are not in the dollars."""


class BesidePeople(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Agreement of two people, and of the grader with one of them, over the answers that have several labels.

    Both are over single labels, so that they compare: what people disagree about, no grader can get right.
    """

    answers: int
    people: Estimate
    """Kappa of the labels among themselves (Fleiss')."""
    grader: Estimate
    """Cohen's kappa of the grader with single labels."""
    people_same: float
    """Share of pairs of labels that are the same."""
    grader_same: float
    """Share of labels that the grader's verdict equals."""


class Profile(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The agreement of a grader with the labels of one set."""

    schema: int = SCHEMA
    grader: str
    """The grader's name, with everything that its grades depend on."""
    set: str
    digest: str
    """Digest of the whole labelled set."""
    labelled_by: str
    """`people`, `model`, or `people and model`."""
    only: dict[str, str] = {}
    """The part of the set that was graded: `{"language": "zh"}`."""
    sample: Sample | None = None
    date: str = ""
    """As given by the user."""
    asked: int
    """Number of answers that the grader was given."""
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
    less_exact: int = 0
    """Answers called wrong since their date, which fits, is less exact than the accepted one."""
    threshold: Threshold
    injection: Injection | None = None
    cost: Cost | None = None
    """None = the grader asks no model."""

    @property
    def quoted(self) -> Agreement:
        """The agreement that is quoted elsewhere: without answers that the grader was fitted on."""
        return self.held_out or self.whole

    @property
    def graded(self) -> int:
        """Number of answers with a grade."""
        return self.whole.answers

    def to_json(self) -> bytes:
        """Return the profile as JSON, the same bytes for the same figures."""
        return msgspec.json.format(msgspec.json.encode(self), indent=1) + b"\n"


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
_PLAIN = re.compile(r"[^A-Za-z0-9]+")


class QuotedProfile(NamedTuple):
    """A profile, and why it may not hold."""

    profile: Profile
    stale: str = ""
    """Empty if the profile is of the very grader that was asked for."""


class _Schema(msgspec.Struct):
    schema: int


class Profiles:
    """All profiles of some folders, the first folder's first. Raises RunError for a damaged one."""

    def __init__(self, folders: Sequence[Path] = ()) -> None:
        self._found: dict[tuple[str, str, str, bool], Profile] = {}
        # Of another version of ctxbench: reported, not read, since their figures may mean something else.
        self.passed_over: list[str] = []
        for folder in folders or (user_folder(), SHIPPED):
            for path in sorted(folder.glob("*.json")):
                profile = self._read(path)
                if profile is not None:
                    key = profile.grader, profile.set, str(profile.only), profile.sample is None
                    # The user's folder is read before ours: a grader calibrated again is quoted by that.
                    self._found.setdefault(key, profile)

    def of(self, grader: str) -> list[QuotedProfile]:
        """Return the grader's profiles, the best first; those of its other versions if it has none."""
        exact = [QuotedProfile(profile) for profile in self._found.values() if profile.grader == grader]
        if exact:
            return _best(exact)
        kind = unversioned(grader)
        others = [profile for profile in self._found.values() if unversioned(profile.grader) == kind]
        return _best([QuotedProfile(profile, f"measured on {profile.grader}, not {grader}") for profile in others])

    def _read(self, path: Path) -> Profile | None:
        try:
            data = read_file(path)
            # The version first: the rest of another version's file need not fit.
            if (schema := msgspec.json.decode(data, type=_Schema).schema) != SCHEMA:
                self.passed_over.append(f"{path}: a profile of version {schema}, not {SCHEMA}: calibrate again")
                return None
            return msgspec.json.decode(data, type=Profile)
        except OSError as error:
            raise RunError(f"{path}: cannot be read: {error.strerror or error}") from None
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise RunError(f"{path}: is no profile of a grader ({error}): remove it, and calibrate again") from None


def profile_of(grader: str, folders: Sequence[Path] = ()) -> QuotedProfile | Missing:
    """Return the profile to quote beside this grader's scores."""
    profiles = Profiles(folders).of(grader)
    return profiles[0] if profiles else Missing("unsupported", f"{grader} was not calibrated: ctxbench lab calibrate")


def user_folder() -> Path:
    """Return the folder where `ctxbench lab calibrate` stores profiles."""
    return cache_folder() / "profiles"


def keep(profile: Profile, folder: Path) -> Path:
    """Write a profile in place of an older one of the same grader, set and part or sample. Raises RunError."""
    path = folder / file_name(profile)
    try:
        with placed(path) as draft:
            draft.write_bytes(profile.to_json())
    except OSError as error:
        raise RunError(f"{path}: cannot be written: {error.strerror or error}") from None
    return path


def file_name(profile: Profile) -> str:
    """Return a readable file name that differs by grader, set, part, and for a sample."""
    part = [f"{name}={value}" for name, value in sorted(profile.only.items())] + ["sample"] * (
        profile.sample is not None
    )
    whole = "\0".join([profile.grader, profile.set, *part])
    words = _PLAIN.sub("-", " ".join([unversioned(profile.grader), profile.set, *part])).strip("-").lower()
    return f"{words[:80]}-{sha256(whole.encode()).hexdigest()[:8]}.json"


def unversioned(grader: str) -> str:
    """Return the grader's name without what tells its versions apart."""
    return _VERSION.sub("", grader)


def _best(quoted: Sequence[QuotedProfile]) -> list[QuotedProfile]:
    """Return the profiles, the best first; only the best of the same answers, so that no sample stands beside the
    whole."""
    best: dict[tuple[str, str, str], QuotedProfile] = {}
    for profile in sorted(quoted, key=_rank):
        best.setdefault((profile.profile.grader, profile.profile.set, str(profile.profile.only)), profile)
    return list(best.values())


def _rank(quoted: QuotedProfile) -> tuple[bool, bool, int, str]:
    profile = quoted.profile
    # People's labels before a model's, a whole set before a part of it, then the most answers. False sorts first.
    return profile.labelled_by != "people", bool(profile.only), -profile.graded, profile.set
