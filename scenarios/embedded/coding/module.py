"""A source file of the coding scenario: what is known about it while the agent works on it."""

from __future__ import annotations

from dataclasses import dataclass, field

from .bugs import Bug
from .words import Kind


@dataclass
class Constant:
    """`$ENT_$ROLE_$SUFFIX = value`, kept up to date with the source."""

    name: str
    kind: Kind
    value: int


@dataclass(frozen=True)
class Planted:
    """A bug in a module: the text to replace, and the test that shows it. Texts are final."""

    bug: Bug
    method: str
    before: str
    wrong: str
    right: str
    test_name: str
    test: str
    fails: str
    error: str
    facts: dict[str, str]


@dataclass
class Module:
    """A source file with what is known about it. `text` changes when the agent edits it."""

    name: str
    area: str
    package: str
    thing: str
    thing_zh: str
    role: str
    role_zh: str
    owner: int
    runbook: str
    code: str
    constants: list[Constant] = field(default_factory=list)
    text: str = ""
    facts: dict[str, str] = field(default_factory=dict)
    bug: Planted | None = None
    methods: list[str] = field(default_factory=list)

    @property
    def path(self) -> str:
        return f"src/{self.package}/{self.area}/{self.name}.py"

    @property
    def test_path(self) -> str:
        return f"tests/{self.area}/test_{self.name}.py"


def camel(name: str) -> str:
    """`parcel_router` → `ParcelRouter`."""
    return "".join(part.capitalize() for part in name.split("_"))


def plural(name: str) -> str:
    """A plural that is good enough for names in code."""
    if name.endswith(("ss", "x", "ch", "sh")):
        return f"{name}es"
    return f"{name[:-1]}ies" if name.endswith("y") and name[-2] not in "aeiou" else f"{name}s"
