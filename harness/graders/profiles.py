"""What is kept of a grader's calibration: figures and counts, no text of the labelled set."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

import msgspec

from ...metrics.grading.agreement import Agreement, Estimate
from ...metrics.grading.correction import Known, corrected
from ...metrics.statistics.intervals import Ends
from ...metrics.value import Missing, Value
from ...scenarios.errors import RunError
from ..models.local import cache_folder
from .labels import Sample

SCHEMA = 1
"""To be raised when a profile of before would be read wrongly."""


class Threshold(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A threshold of the grader's scores, learned on one half of the questions and tried on the other.

    It is the one with the highest kappa. `own_…` is the grader's own verdict on the same other half. All are Missing if
    there is none.
    """

    threshold: Value
    learned_on: int
    """Answers."""
    tried_on: int
    accuracy: Estimate
    kappa: Estimate
    own_accuracy: Estimate
    own_kappa: Estimate


class Flips(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How often one attack had the verdict that it wanted."""

    attack: str
    tried: int
    flipped: int
    interval: Ends | Missing
    missing: int = 0
    """Attacked answers that were not graded."""


class Injection(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Answers that speak to the grader (`harness/graders/attacks.py`)."""

    answers: int
    raised: tuple[int, int]
    """Of attacks on answers graded wrong: tried, and turned to right."""
    lowered: tuple[int, int]
    """The same of answers graded right."""
    missing: int
    share: Estimate
    """Of attacks, those that turned the verdict; the interval is by question."""
    attacks: tuple[Flips, ...]


class Cost(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the grader's model calls cost, replayed or not, at the prices of the bundled map."""

    calls: int
    input_tokens: int
    output_tokens: int
    dollars: float
    unpriced: int = 0
    """Calls whose price is not known: they are not in the dollars."""


class Profile(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """How well a grader agrees with the labels of one set."""

    schema: int = SCHEMA
    grader: str
    """Its name, with all that its grades depend on."""
    set: str
    digest: str
    """Of the whole labelled set."""
    labelled_by: str
    """`people`, `model`, or `people and model`."""
    only: dict[str, str] = {}
    """The part of the set that was graded: `{"language": "zh"}`."""
    sample: Sample | None = None
    date: str = ""
    """As the user gave it."""
    asked: int
    """Answers that the grader was given."""
    missing: dict[str, int]
    """Answers without a grade, by reason. They are in no other figure."""
    whole: Agreement
    held_out: Agreement | None = None
    """Over the answers that the grader was not fitted on; None if it was fitted on none of this set."""
    by: dict[str, dict[str, Agreement]]
    """By language, kind or system, where there are several."""
    threshold: Threshold
    injection: Injection | None = None
    cost: Cost | None = None
    """None = it asks no model."""

    @property
    def quoted(self) -> Agreement:
        """What is said of the grader elsewhere: nothing that it was fitted on."""
        return self.held_out or self.whole

    @property
    def graded(self) -> int:
        """Answers with a grade."""
        return self.whole.answers

    def to_json(self) -> bytes:
        """The same bytes for the same figures."""
        return msgspec.json.format(msgspec.json.encode(self), indent=1) + b"\n"


def corrected_by(profile: Profile, share: float, answers: float) -> Estimate:
    """The share of right answers where the grader calls `share` of `answers` right (`metrics/grading/correction.py`).

    `answers` that are not independent are to be given as the number that they are worth.
    """
    known = Known.of(profile.quoted)
    return Estimate(known, known) if isinstance(known, Missing) else corrected(share, answers, known)


SHIPPED = Path(__file__).parent / "shipped"
"""Profiles of graders that need no model, in the wheel."""

_VERSION = re.compile(r"\(\d+\)$|(?:, )?\bprompt='[0-9a-f]*'|@[0-9a-f]+\b")
"""What of a grader's name tells its versions apart: `rules(1)`, `llm(model='…', prompt='…')`, `name@digest`."""
_PLAIN = re.compile(r"[^A-Za-z0-9]+")


class QuotedProfile(NamedTuple):
    """A profile, and why it may not hold."""

    profile: Profile
    stale: str = ""
    """Empty if it is of the grader that was asked for."""


class _Schema(msgspec.Struct):
    schema: int


class Profiles:
    """All profiles of some folders; the first folder's go first. Raises RunError for one that is damaged."""

    def __init__(self, folders: Sequence[Path] = ()) -> None:
        self._found: dict[tuple[str, str, str, bool], Profile] = {}
        self.passed_over: list[str] = []
        """Profiles that another ctxbench wrote, which is said and not read."""
        for folder in folders or (user_folder(), SHIPPED):
            for path in sorted(folder.glob("*.json")):
                profile = self._read(path)
                if profile is not None:
                    key = profile.grader, profile.set, str(profile.only), profile.sample is None
                    self._found.setdefault(key, profile)

    def of(self, grader: str) -> list[QuotedProfile]:
        """The grader's profiles, the best first; those of its other versions if it has none."""
        exact = [QuotedProfile(each) for each in self._found.values() if each.grader == grader]
        if exact:
            return _best(exact)
        kind = unversioned(grader)
        others = [each for each in self._found.values() if unversioned(each.grader) == kind]
        return _best([QuotedProfile(each, f"measured on {each.grader}, not {grader}") for each in others])

    def _read(self, path: Path) -> Profile | None:
        try:
            data = path.read_bytes()
            if (schema := msgspec.json.decode(data, type=_Schema).schema) != SCHEMA:
                self.passed_over.append(f"{path}: a profile of version {schema}, not {SCHEMA}: calibrate again")
                return None
            return msgspec.json.decode(data, type=Profile)
        except OSError as error:
            raise RunError(f"{path}: cannot be read: {error.strerror or error}") from None
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise RunError(f"{path}: is no profile of a grader ({error}): remove it, and calibrate again") from None


def profile_of(grader: str, folders: Sequence[Path] = ()) -> QuotedProfile | Missing:
    """What is to be quoted beside this grader's scores."""
    found = Profiles(folders).of(grader)
    return found[0] if found else Missing("unsupported", f"{grader} was not calibrated: ctxbench calibrate")


def user_folder() -> Path:
    """Where `ctxbench calibrate` keeps profiles."""
    return cache_folder() / "profiles"


def keep(profile: Profile, folder: Path) -> Path:
    """Write a profile in place of that of the same grader, set and part, or sample of it. Raises RunError."""
    path = folder / file_name(profile)
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        beside.write_bytes(profile.to_json())
        beside.replace(path)
    except OSError as error:
        raise RunError(f"{path}: cannot be written: {error.strerror or error}") from None
    return path


def file_name(profile: Profile) -> str:
    """A name that can be read, and is another for another grader, set or part, and for a sample."""
    part = [f"{name}={value}" for name, value in sorted(profile.only.items())] + ["sample"] * (
        profile.sample is not None
    )
    whole = "\0".join([profile.grader, profile.set, *part])
    words = _PLAIN.sub("-", " ".join([unversioned(profile.grader), profile.set, *part])).strip("-").lower()
    return f"{words[:80]}-{sha256(whole.encode()).hexdigest()[:8]}.json"


def unversioned(grader: str) -> str:
    """The grader's name without what tells its versions apart."""
    return _VERSION.sub("", grader)


def _best(found: Sequence[QuotedProfile]) -> list[QuotedProfile]:
    """The best first; of the profiles of the same answers only the best, so that a sample is not given beside all."""
    once: dict[tuple[str, str, str], QuotedProfile] = {}
    for each in sorted(found, key=_rank):
        once.setdefault((each.profile.grader, each.profile.set, str(each.profile.only)), each)
    return list(once.values())


def _rank(found: QuotedProfile) -> tuple[bool, bool, int, str]:
    profile = found.profile
    return profile.labelled_by != "people", bool(profile.only), -profile.graded, profile.set
