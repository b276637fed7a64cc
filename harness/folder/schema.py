"""The files of a run: the manifest, the tables, and what each column means.

A context is stored as what changed since the step before: `kept` messages stay, then come the spans
[added_from, added_to). They count messages by number: those of the recording from 0, after them those that the strategy
wrote (table `contexts`).
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from hashlib import blake2b
from importlib.resources import files
from itertools import compress
from typing import TypeVar

import msgspec
import pyarrow as pa

from ctxbench.metrics.structure import FAULTS
from ctxbench.scenarios.code import Code
from ctxbench.scenarios.errors import Place, UserError
from ctxbench.strategies.chain import NAMED, parse, spec

from .files import DIGEST

_TYPES: Mapping[str, pa.DataType] = {
    "text": pa.string(),
    "name": pa.dictionary(pa.int32(), pa.string()),
    "bool": pa.bool_(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "float64": pa.float64(),
    "texts": pa.list_(pa.string()),
    "int32s": pa.list_(pa.int32()),
    "float64s": pa.list_(pa.float64()),
}

Columns = dict[str, dict[str, tuple[pa.DataType, str]]]
Signed = TypeVar("Signed", bound=msgspec.Struct)


def columns_in(package: str) -> Columns:
    """Return the tables of a package's `data/columns.toml`, each with the type and the meaning of its columns."""
    tables = tomllib.loads((files(package) / "data/columns.toml").read_text("utf-8"))
    return {
        table: {name: (_TYPES[kind], about) for name, (kind, about) in columns.items()}
        for table, columns in tables.items()
    }


def schemas_of(columns: Columns) -> dict[str, pa.Schema]:
    """Return the Arrow schema of each table."""
    return {table: pa.schema([(name, kind) for name, (kind, _) in rows.items()]) for table, rows in columns.items()}


COLUMNS = columns_in(__package__)
"""Each table's columns: the type, and what it means. What is not known is null."""
COLUMNS["steps"] |= {name: (pa.int32(), about) for name, about in FAULTS.items()}
SCHEMAS = schemas_of(COLUMNS)

FORMAT = 13
"""Number of the run folder's layout. This version reads no other."""
USUAL_MODEL = "gpt-4o"
"""The model whose context window counts where the recording does not say which model was called."""


class ManifestPlan(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The question that a run answers. Two runs with equal plans on equal recordings have equal results."""

    names: tuple[str, ...]  # scenarios and paths, as they were given
    form: str | None  # the format that every file was read as; None = each as its own
    strategies: tuple[str, ...]
    encoding: str
    window: str
    """Context window that overflows are counted against: a model, or a number of tokens; empty = those of the recorded
    models (`run.windows`)."""
    probes: bool
    summariser: str
    embedder: str
    limit: int | msgspec.UnsetType = msgspec.UNSET  # how many conversations were read at most; unset = all


class LeftOutRecording(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A conversation or a part of one that could not be read, and so is in no table."""

    file: str
    line: int  # line in the file, from 1; 0 = the whole file
    field: str  # as `messages[3].role`; empty = the whole conversation
    what: str
    remedy: str

    def __str__(self) -> str:
        """Return the place, the problem and the remedy on one line."""
        return f"{Place(self.file, self.line, self.field)}: {self.what}{f' ({self.remedy})' if self.remedy else ''}"


_QUOTED = re.compile(r"'[^']*'")
_DIGITS = re.compile(r"\d+")


def alike(problems: Sequence[LeftOutRecording]) -> list[tuple[LeftOutRecording, int]]:
    """Group the problems of a file that differ only in line, index and quoted value: the first, and how many there are.

    One damaged file may have thousands of the same problem, which would bury those of all other files.
    """
    groups: dict[tuple[str, ...], tuple[LeftOutRecording, int]] = {}
    for problem in problems:
        key = problem.file, _DIGITS.sub("", problem.field), _QUOTED.sub("", problem.what), problem.remedy
        first, times = groups.get(key, (problem, 0))
        groups[key] = first, times + 1
    return list(groups.values())


class Spending(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Calls that were made to models, and what they cost. Replies that a cassette replays do not count."""

    calls: int = 0  # number of calls that were answered
    dollars: float = 0.0  # US dollars, with what is set aside for calls under way
    unpriced: int = 0  # calls whose price is not known
    unanswered: int = 0
    """Tries whose answer was lost, by a time-out or a broken connection: each is charged as the most it can cost."""
    refused: int = 0  # calls that were not made because of the spend limit


_FILE_DIGEST = re.compile(r"(?<=\w)@[0-9a-f]{12}(?=['(\s|]|\Z)")
_STAGE = r"(?<![\w.]){}(?=[(\s]|\Z)"  # the name of a stage in the text of a strategy
_BY = "strategy "  # start of the names of `Manifest.versions` that stand for packages of strategies


def without_digest(strategy: str) -> str:
    """Return the text of a strategy without the digests of files."""
    return _FILE_DIGEST.sub("", strategy)


# A field that nobody wrote is an error: the manifest of another version must not be read as one of this.
class Manifest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The content of `manifest.json`."""

    format: int
    plan: ManifestPlan
    window: int  # context window of the plan, or of `USUAL_MODEL` where it names none, in tokens
    versions: dict[str, str]
    """Versions of ctxbench, Python, libraries, the model map, and the packages of the strategies."""
    complete: bool
    strategy_names: dict[str, str] = {}  # the name that the user gave to a strategy, by its text
    sources: dict[str, Code] | msgspec.UnsetType = msgspec.UNSET
    """Strategies that a notebook or a script has defined, by the names of their stages; not there if there are none."""
    conversations: int = 0
    shards: int = 0
    digest: str = ""  # SHA-256 over the recordings of all shards, in order
    problems: tuple[LeftOutRecording, ...] = ()
    ignored: tuple[str, ...] = ()  # files below the inputs that are no recordings
    notes: tuple[str, ...] = ()
    spent: Spending | msgspec.UnsetType = msgspec.UNSET
    """Cost of the calls of all commands on this folder; not there if none had to be paid for."""
    files: dict[str, str] = {}  # digest of each file of the run but the times, by its path in the folder
    blake2b: str = ""  # digest of all that stands above

    def name_of(self, strategy: str) -> str:
        """Return the name of a strategy in comparisons: the given one, or its text without digests of files."""
        return self.strategy_names.get(strategy) or without_digest(strategy)

    def settings_of(self, strategy: str) -> str:
        """Return the text of a strategy, also with digests of what a notebook or a script has defined."""
        for name, defined in self.sources_of(strategy).items():
            strategy = re.sub(_STAGE.format(name), f"{name}@{defined.digest}", strategy)
        return strategy

    def sources_of(self, strategy: str) -> dict[str, Code]:
        """Return what a notebook or a script has defined of a strategy, by the names of its stages."""
        defined = (self.sources or {}).items()
        return {name: source for name, source in defined if re.search(_STAGE.format(name), strategy)}

    def libraries(self) -> dict[str, str]:
        """Map each strategy of other packages to these, with their versions: `langchain 1.5.2`."""
        brought = {name.removeprefix(_BY): whose for name, whose in self.versions.items() if name.startswith(_BY)}
        libraries: dict[str, str] = {}
        for strategy in self.plan.strategies:
            stages = [stage.strip().partition("(")[0] for stage in strategy.split("|")]
            if versions := dict.fromkeys(whose for name, whose in brought.items() if name in stages):
                libraries[strategy] = ", ".join(versions)
        return libraries


def signed(content: Signed) -> Signed:
    """Return the content of a file as it will be read (7125.0 for 7125), with its own digest in its field `blake2b`."""
    content = msgspec.json.decode(msgspec.json.encode(msgspec.structs.replace(content, blake2b="")), type=type(content))
    digest = blake2b(msgspec.json.encode(content), digest_size=DIGEST).hexdigest()
    return msgspec.structs.replace(content, blake2b=digest)


LEFT_OUT = "left out by --no-text"  # stands in the place of words that may quote a recording


def without_text(manifest: Manifest) -> Manifest:
    """Return a manifest without the words that may quote a recording."""
    problems = tuple(msgspec.structs.replace(problem, what=LEFT_OUT) for problem in manifest.problems)
    return msgspec.structs.replace(manifest, problems=problems, notes=())


SHORT = 26  # characters of a strategy's name in a table


def short_names(strategies: Iterable[str], width: int) -> dict[str, str]:
    """Return for each strategy its text in at most `width` characters, where that tells it from the others.

    A chain with a name is called by it. Of others the last parameters are left out: `smart(window=300, …)`. Digests of
    files are left out of all.
    """
    plain = {text: without_digest(text) for text in strategies}
    texts = {text: name if len(name) <= width else _short(name, width) for text, name in plain.items()}
    times = Counter(texts.values())
    return {text: short if times[short] == 1 else text for text, short in texts.items()}


def _short(text: str, width: int) -> str:
    if name := _named().get(text):
        return name
    stages = []  # the name of each strategy and its parameters; a text that is no call, such as a file's, is a name
    for stage in text.split(" | "):
        stages.append((stage, list[str]()))
        with suppress(SyntaxError):
            call = ast.parse(stage, mode="eval").body
            if isinstance(call, ast.Call):
                stages[-1] = ast.unparse(call.func), list(map(ast.unparse, call.keywords))
    kept = [len(parameters) for _, parameters in stages]

    def shown(at: int) -> str:
        name, parameters = stages[at]
        words = [*parameters[: kept[at]], *["…"] * (kept[at] < len(parameters))]
        return f"{name}({', '.join(words)})" if words else name

    while len(short := " | ".join(map(shown, range(len(stages))))) > width and any(kept):
        kept[max(compress(range(len(stages)), kept), key=lambda at: len(shown(at)))] -= 1
    return short


def with_recipe_names(text: str) -> str:
    """Return a text with each long chain called by its recipe's name, as by `short_names`, if no stage is beside it."""
    return _chains().sub(lambda found: _named()[found[0]], text)


@cache
def _chains() -> re.Pattern[str]:
    chains = sorted((chain for chain in _named() if len(chain) > SHORT), key=len, reverse=True)
    return re.compile(rf"(?<!\| )(?:{'|'.join(map(re.escape, chains))})(?! \|)")


@cache
def _named() -> dict[str, str]:
    """Return the names of recipes by the texts of their chains."""
    named = {}
    for name, recipe in NAMED.items():
        with suppress(UserError):  # a recipe that needs an extra
            named[spec(parse(recipe.chain))] = name
    return named
