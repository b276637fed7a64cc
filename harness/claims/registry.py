"""Register every claim in the order of its number, measure it, and store findings with a run.

What is claimed, and what is said of it, stands in `data/claims.toml`; each subject has the functions that measure.
"""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.resources import files
from pathlib import Path

import msgspec

from ctxbench.scenarios.errors import RunError, SpecError, UserError
from ctxbench.scenarios.spec import nearest

from ..engine.workers import side_by_side
from ..folder.files import placed
from ..folder.run import Run, load
from ..folder.steps import rows_of
from ..models import Settings
from . import compression, cost, search, storage, tiers, tokens
from .claim import Finding, Measurement, sentence, verdict_of
from .inputs import ClaimInputs


@dataclass(frozen=True, slots=True)
class Claim:
    """One claim of the register, and how it is measured."""

    id: str
    measure: Callable[[ClaimInputs], Measurement]
    strategies: tuple[str, ...] = ()
    """Strategies that must have been run on the run's own conversations; missing ones are run beside it."""
    claim: str = ""
    source: str = ""
    """Design document and section."""
    protocol: str = ""
    remark: str = ""
    """Explanation that is shown beside the figures."""
    needed: str = ""
    """Remedy: the change that would make the claim hold. It is shown where the claim fails or cannot be told."""
    slow: bool = False
    """Whether `--quick` leaves it out."""

    def finding(self, inputs: ClaimInputs) -> Finding:
        """Measure the claim. If that is impossible the finding says why, and other claims are still measured."""
        measurement, needed = Measurement(), self.needed
        if self.slow and inputs.quick:
            remark, needed = "Left out by --quick: it takes a minute or more.", "A run without --quick."
        else:
            try:
                measurement = self.measure(inputs)
                remark = self.remark.format(**measurement.values)
            except UserError as error:
                remark, needed = f"It cannot be measured: {error}.", ""
        verdict = verdict_of(measurement.rows)
        why = " ".join(part for part in (sentence(measurement.rows, verdict), remark) if part)
        needed = "" if verdict == "holds" else needed
        return Finding(self.id, self.claim, self.source, self.protocol, verdict, why, measurement.rows, needed)


_MEASURES = {
    **tokens.MEASURES,
    **cost.MEASURES,
    **storage.MEASURES,
    **search.MEASURES,
    **compression.MEASURES,
    **tiers.MEASURES,
}
_TEXTS = tomllib.loads((files(__package__) / "data/claims.toml").read_text("utf-8"))
CLAIMS = {id: Claim(id, *_MEASURES[id], **texts) for id, texts in _TEXTS.items()}


def chosen(names: Iterable[str]) -> list[Claim]:
    """Return the named claims in their order, all if none is named. Raises SpecError for an unknown one."""
    ids = {name.strip().upper() for name in names}
    for name in sorted(ids):
        if name not in CLAIMS:
            raise SpecError(
                f"unknown claim {name!r}{nearest(name, dict.fromkeys(CLAIMS))}; there are C01 to {max(CLAIMS)}"
            )
    return [claim for name, claim in CLAIMS.items() if name in ids or not ids]


class _Task(msgspec.Struct, frozen=True):
    """Claims that one worker measures, and what it needs to have the same inputs as the others."""

    claims: tuple[str, ...]
    folder: str
    run: str
    strategies: tuple[str, ...]
    recordings: tuple[str, ...]
    quick: bool
    slow: bool
    models: Settings


_read_task = msgspec.msgpack.Decoder(_Task).decode


def measure(
    claims: Sequence[Claim], inputs: ClaimInputs, jobs: int, done: Callable[[int], None]
) -> Mapping[str, Finding]:
    """Measure claims on worker processes, and return the findings by number. `done` hears how many are finished.

    No finding depends on the number of workers, except that times are measured beside other workers.
    """
    groups = grouped(claims)
    # Without strategies it is not known whether any claim needs the run, which would be made once in each worker.
    if jobs == 1 or len(groups) == 1 or not inputs.strategies:
        findings = {}
        for claim in claims:
            findings[claim.id] = claim.finding(inputs)
            done(1)
        return findings
    _ = inputs.extra_run  # with all workers at once, before they divide the claims among them
    return _on_workers(groups, inputs, jobs, done)


RUN = "run"
LONGEST = (RUN, compression.__name__, tiers.__name__, search.__name__)
"""Groups of claims that take longest, by their processor time: each some five times as long as the others together."""


def grouped(claims: Iterable[Claim]) -> list[list[Claim]]:
    """Return claims in groups that share what takes long to make: figures of the run, or samples of a subject.

    The longest groups come first, so that none is left for the end, where other workers would wait for it.
    """
    groups: dict[str, list[Claim]] = {name: [] for name in LONGEST}
    for claim in claims:
        groups.setdefault(RUN if claim.strategies else claim.measure.__module__, []).append(claim)
    return [group for group in groups.values() if group]


def _on_workers(
    groups: Sequence[Sequence[Claim]], inputs: ClaimInputs, jobs: int, done: Callable[[int], None]
) -> Mapping[str, Finding]:
    findings: dict[str, Finding] = {}

    def collect(outcome: tuple[list[Finding], list[str]]) -> None:
        found, failures = outcome
        findings.update({finding.id: finding for finding in found})
        inputs.failures += failures
        done(len(found))

    tasks = (
        _Task(
            tuple(claim.id for claim in group),
            str(inputs.folder),
            str(inputs.run.folder),
            inputs.strategies,
            inputs.recordings,
            inputs.quick,
            inputs.slow,
            inputs.models,
        )
        for group in groups
    )
    side_by_side(_measured, map(msgspec.msgpack.encode, tasks), min(jobs, len(groups)), collect)
    return findings


def _measured(packed: bytes) -> tuple[list[Finding], list[str]]:
    """Return the findings of a task, and the models that failed it, in a worker."""
    task = _read_task(packed)
    inputs = ClaimInputs(
        partial(load, Path(task.run)),
        rows_of,
        Path(task.folder),
        task.strategies,
        task.recordings,
        task.quick,
        task.slow,
        task.models,
    )
    return [CLAIMS[id].finding(inputs) for id in task.claims], inputs.failures


FILE, VERSION = "claims.json", 1


class StoredFindings(msgspec.Struct, frozen=True):
    """All findings on one run, and how they were made."""

    version: int
    run: str
    """The digest of the run's manifest: findings on another run do not count."""
    findings: tuple[Finding, ...]
    quick: bool = False
    recordings: tuple[str, ...] = ()


def digest_of(run: Run) -> str:
    """Return the SHA-256 of the bytes of the run's manifest."""
    return hashlib.sha256((run.folder / "manifest.json").read_bytes()).hexdigest()


def write(run: Run, findings: Sequence[Finding], quick: bool, recordings: Sequence[str]) -> Path:
    """Store findings in a run's folder, whole or not at all. Raises RunError if they cannot be written."""
    path = run.folder / FILE
    names = tuple(Path(recording).name for recording in recordings)
    stored = StoredFindings(VERSION, digest_of(run), tuple(findings), quick, names)
    try:
        with placed(path) as draft:
            draft.write_bytes(msgspec.json.encode(stored))
    except OSError as error:
        raise RunError(f"{path}: cannot be written: {error.strerror or error}") from None
    return path


def read(run: Run) -> StoredFindings | None:
    """Return the findings on this very run, or None if there are none of this version."""
    path = run.folder / FILE
    if not path.is_file():
        return None
    try:
        stored = msgspec.json.decode(path.read_bytes(), type=StoredFindings)
    except (OSError, msgspec.DecodeError):  # another version's file is no error: the claims are measured again
        return None
    return stored if stored.version == VERSION and stored.run == digest_of(run) else None
