"""Register every claim in the order of its number, measure it, and store findings with a run.

What is claimed, by which figures of which settings, and what is said of it stands in `claims.toml`. The rows there are
measured by `rows.py`; what no row can say is measured by the claim's function.
"""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from importlib.resources import files
from pathlib import Path

import msgspec

from ctxbench.scenarios.errors import RunError, SpecError, UserError
from ctxbench.scenarios.spec import nearest

from ..engine.workers import side_by_side
from ..folder.files import placed
from ..folder.run import Run, load
from ..models import Settings
from . import cost, search, storage, texts, tiers
from .claim import Claimed, ClaimRow, Finding, Measured, Measurement, Unit, sentence, verdict_of
from .inputs import ClaimInputs
from .rows import Row, measure_row, strategy_of

Bound = float | dict[str, float] | None
"""One for all settings, or by setting: others have none."""


class Figure(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Name of a figure of a claim, and the bounds that are claimed."""

    text: str
    unit: Unit = "share"
    least: Bound = None
    most: Bound = None
    equals: Bound = None
    upper: float | None = None
    above: bool = False
    decides: bool | tuple[str, ...] = True
    """Whether it decides the claim, or the settings in which it does."""
    timed: bool = False

    def row(self, measured: Measured) -> ClaimRow:
        """Return what was measured beside what is claimed of it."""
        least, most, equals = (
            bound.get(measured.setting) if isinstance(bound, dict) else bound
            for bound in (self.least, self.most, self.equals)
        )
        least, most = (least, most) if equals is None else (equals, equals)
        return ClaimRow(
            setting=measured.setting,
            figure=self.text,
            unit=self.unit,
            found=measured.found,
            claimed=None if least is most is None else Claimed(least, most, self.upper, self.above),
            bound=measured.bound,
            of=measured.of,
            decides=self.decides if isinstance(self.decides, bool) else measured.setting in self.decides,
            timed=self.timed,
        )


Measure = Callable[[ClaimInputs], Measurement]


class Claim(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One claim of the register, and how it is measured."""

    claim: str
    source: str
    """Design document and section."""
    protocol: str
    remark: str
    """Explanation that is shown beside the figures; a name in braces is measured with them."""
    needed: str
    """Remedy: the change that would make the claim hold. It is shown where the claim fails or cannot be told."""
    figures: dict[str, Figure]
    rows: tuple[Row, ...] = ()
    runs: tuple[str, ...] = ()
    """Strategies that its function needs on the run's conversations, beside those of its rows."""
    slow: bool = False
    """Whether `--quick` leaves it out."""
    id: str = ""

    @property
    def strategies(self) -> tuple[str, ...]:
        """Strategies that must have been run on the run's own conversations; missing ones are run beside it."""
        of_rows = (name for row in self.rows if row.on == "run" for name in (row.strategy, row.against) if name)
        return tuple(dict.fromkeys(map(strategy_of, (*self.runs, *of_rows))))

    def finding(self, inputs: ClaimInputs, function: Measure | None = None) -> Finding:
        """Measure the claim. If that is impossible the finding says why, and other claims are still measured."""
        rows: tuple[ClaimRow, ...] = ()
        needed = self.needed
        if self.slow and inputs.quick:
            remark, needed = "Left out by --quick: it takes a minute or more.", "A run without --quick."
        else:
            try:
                measurement = (function or FUNCTIONS.get(self.id, _nothing))(inputs)
                of_rows = [measured for row in self.rows for measured in measure_row(row, inputs)]
                rows = tuple(self.figures[each.figure].row(each) for each in (*measurement.figures, *of_rows))
                remark = self.remark.format(**measurement.values)
            except UserError as error:
                remark, needed = f"It cannot be measured: {error}.", ""
        verdict = verdict_of(rows)
        why = " ".join(part for part in (sentence(rows, verdict), remark) if part)
        needed = "" if verdict == "holds" else needed
        return Finding(self.id, self.claim, self.source, self.protocol, verdict, why, rows, needed)


def _nothing(_: ClaimInputs) -> Measurement:
    return Measurement()


FUNCTIONS: Mapping[str, Measure] = {
    "C08": cost.together,
    "C09": cost.discounts,
    "C10": cost.example,
    "C12": storage.turn_tokens,
    "C13": storage.lossless,
    "C14": storage.triggers,
    "C15": search.weighed,
    "C16": texts.estimate,
    "C17": texts.counting,
    "C18": texts.examples,
    "C20": tiers.hit_rate,
    "C21": tiers.hybrid,
    "C22": tiers.as_written,
    "C23": storage.compression,
    "C24": storage.kinds,
    "C25": storage.speed,
    "C26": search.accuracy,
    "C27": search.latency,
    "C28": tiers.latencies,
    "C29": cost.latencies,
    "C30": tiers.tuner,
    "C31": search.example,
}
_REGISTER = tomllib.loads((files(__package__) / "claims.toml").read_text("utf-8"))
CLAIMS = {id: msgspec.convert({**claim, "id": id}, Claim) for id, claim in _REGISTER.items()}


def chosen(names: Iterable[str]) -> list[Claim]:
    """Return the named claims in their order, all if none is named. Raises SpecError for an unknown one."""
    ids = {name.strip().upper() for name in names}
    for name in sorted(ids):
        if name not in CLAIMS:
            raise SpecError(
                f"unknown claim {name!r}{nearest(name, dict.fromkeys(CLAIMS))}; there are C01 to {max(CLAIMS)}"
            )
    return [claim for name, claim in CLAIMS.items() if name in ids or not ids]


GROUPS = (
    tuple(id for id, claim in CLAIMS.items() if claim.strategies),
    ("C23", "C24", "C25"),
    ("C20", "C21", "C22", "C28", "C30"),
    ("C26", "C27", "C31"),
)
"""Claims that share what takes long to make: figures of the run, or samples of a load. The longest come first, so that
none is left for the end, where other workers would wait for it; the other claims are done in no time."""


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


def measure(
    claims: Sequence[Claim], inputs: ClaimInputs, jobs: int, done: Callable[[int], None]
) -> Mapping[str, Finding]:
    """Measure claims on worker processes, and return the findings by number. `done` hears how many are finished.

    No finding depends on the number of workers, except that times are measured beside other workers.
    """
    ids = {claim.id for claim in claims}
    rest = ids.difference(*GROUPS)
    groups = [group for group in ([id for id in CLAIMS if id in ids & {*part}] for part in (*GROUPS, rest)) if group]
    findings: dict[str, Finding] = {}
    # Without strategies it is not known whether any claim needs the run, which would be made once in each worker.
    if jobs == 1 or len(groups) == 1 or not inputs.strategies:
        for claim in claims:
            findings[claim.id] = claim.finding(inputs)
            done(1)
        return findings
    _ = inputs.extra_run  # with all workers at once, before they divide the claims among them

    def collect(outcome: tuple[list[Finding], list[str]]) -> None:
        found, failures = outcome
        findings.update({finding.id: finding for finding in found})
        inputs.failures += failures
        done(len(found))

    folder, run = str(inputs.folder), str(inputs.run.folder)
    same = inputs.strategies, inputs.recordings, inputs.quick, inputs.slow, inputs.models
    tasks = (msgspec.msgpack.encode(_Task(tuple(group), folder, run, *same)) for group in groups)
    side_by_side(_measured, tasks, min(jobs, len(groups)), collect)
    return findings


def _measured(packed: bytes) -> tuple[list[Finding], list[str]]:
    """Return the findings of a task, and the models that failed it, in a worker."""
    task = msgspec.msgpack.decode(packed, type=_Task)
    opened, same = partial(load, Path(task.run)), (task.strategies, task.recordings, task.quick, task.slow, task.models)
    inputs = ClaimInputs(opened, Path(task.folder), *same)
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
    try:
        with placed(path) as draft:
            draft.write_bytes(
                msgspec.json.encode(StoredFindings(VERSION, digest_of(run), tuple(findings), quick, names))
            )
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
