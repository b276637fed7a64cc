"""TOML with places: which line an error names, and in what words."""

from pathlib import Path

import msgspec
import pytest

from ctxbench.scenarios.errors import SetupError
from ctxbench.scenarios.toml import Keys, Toml, dotted

TEXT = """# a comment
top = 1  # another

[a."b.c"]
one = 1
'two' = {three = 3}
text = '''
[not.a.table]'''

[[a.list]]
x = 1

[[ a . "list" ]]  # spaced
y.z = 1
"""


class Inner(msgspec.Struct, forbid_unknown_fields=True):
    """A table in a table."""

    above: int
    name: str = ""


class Outer(msgspec.Struct, forbid_unknown_fields=True):
    """A table."""

    inner: list[Inner] = []


@pytest.mark.parametrize(
    ("keys", "line"),
    [
        (("top",), 2),
        (("a",), 4),
        (("a", "b.c"), 4),
        (("a", "b.c", "one"), 5),
        (("a", "b.c", "two"), 6),
        (("a", "b.c", "two", "three"), 6),
        (("a", "b.c", "missing"), 4),
        (("a", "list", 0, "x"), 11),
        (("a", "list", 1), 13),
        (("a", "list", 1, "y", "z"), 14),
    ],
)
def test_the_line_of_a_key(keys: Keys, line: int) -> None:
    """Tables, keys, dotted and quoted ones, lists of tables; what has no line of its own has that of what holds it."""
    said = str(Toml(Path("f.toml"), TEXT).wrong(keys, "bad", "mend it"))
    assert said == f"f.toml:{line}: {dotted(keys)}: bad (mend it)"


def test_keys_as_they_are_written() -> None:
    """What is no plain word is quoted."""
    assert dotted(("models", "gpt-5.6", "tiers", 0, "above")) == 'models."gpt-5.6".tiers[0].above'


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[o]\ninner = [{above = 1}, {above = 'x'}]", "f.toml:2: o.inner[1].above: must be a whole number, not text"),
        ("[o]\n[[o.inner]]\nname = 'x'", "f.toml:2: o.inner[0]: above is missing"),
        ("[o]\ninnr = 1", "f.toml:2: o.innr: unknown key; did you mean 'inner'?"),
        ("[o]\n[[o.inner]]\nabove = 1\nabve = 1", "f.toml:4: o.inner[0].abve: unknown key; did you mean 'above'?"),
        ("[o]\n[[o.inner]]\nabove = 1\nfoo = 1", "f.toml:4: o.inner[0].foo: unknown key; there are above, name"),
    ],
)
def test_what_does_not_fit(text: str, said: str) -> None:
    """The first field that is not as wanted, in TOML's words."""
    with pytest.raises(SetupError) as caught:
        Toml(Path("f.toml"), text).convert(("o",), Outer)
    assert str(caught.value).startswith(said)


def test_a_file_that_ends_too_early() -> None:
    """The last line is named."""
    with pytest.raises(SetupError, match=r"^f\.toml:2: not TOML: unterminated string"):
        Toml(Path("f.toml"), 'a = 1\nb = """x')


@pytest.mark.parametrize("text", ["a = " + "[" * 100_000, "x" * 1_000_000 + ".a" * 100 + " = 1"], ids=["list", "key"])
def test_deep_nesting(text: str) -> None:
    """A file that is nested too deep ends with one error, and no crash."""
    with pytest.raises(SetupError, match="nested too deep"):
        Toml(Path("f.toml"), text)
