"""Where profiles are kept, and which of them is quoted beside a grader's scores.

1. A profile is a grader's if it has exactly its name: the name has all that grades depend on (model, variant, digest of
   the prompts or rules).
2. If there is none, one of the same grader in another version is *stale*: it is given, and said to be.
3. Of several, labels by people go before a model's, whole sets before parts, more answers before fewer.
4. What the user calibrated goes before what is shipped, for the same grader and set. A sample takes the place of
   neither: it is kept beside the whole set, and given where there is no profile of more answers.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

import msgspec

from ...metrics.value import Missing
from ...scenarios.errors import RunError
from ..models.places import cache_folder
from .profile import SCHEMA, Profile

SHIPPED = Path(__file__).parent / "shipped"
"""Profiles of graders that need no model, in the wheel."""

_VERSION = re.compile(r"\(\d+\)$|(?:, )?\bprompt='[0-9a-f]*'|@[0-9a-f]+\b")
"""What of a grader's name tells its versions apart: `rules(1)`, `llm(model='…', prompt='…')`, `name@digest`."""
_PLAIN = re.compile(r"[^A-Za-z0-9]+")


class Found(NamedTuple):
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

    def of(self, grader: str) -> list[Found]:
        """The grader's profiles, the best first; those of its other versions if it has none."""
        exact = [Found(each) for each in self._found.values() if each.grader == grader]
        if exact:
            return _best(exact)
        kind = unversioned(grader)
        others = [each for each in self._found.values() if unversioned(each.grader) == kind]
        return _best([Found(each, f"measured on {each.grader}, not {grader}") for each in others])

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


def profile_of(grader: str, folders: Sequence[Path] = ()) -> Found | Missing:
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


def _best(found: Sequence[Found]) -> list[Found]:
    """The best first; of the profiles of the same answers only the best, so that a sample is not given beside all."""
    once: dict[tuple[str, str, str], Found] = {}
    for each in sorted(found, key=_rank):
        once.setdefault((each.profile.grader, each.profile.set, str(each.profile.only)), each)
    return list(once.values())


def _rank(found: Found) -> tuple[bool, bool, int, str]:
    profile = found.profile
    return profile.labelled_by != "people", bool(profile.only), -profile.graded, profile.set
