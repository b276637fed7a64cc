"""A run notes the versions of the libraries whose strategies it has."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

import pytest

from ctxbench.scenarios.errors import MissingExtra
from ctxbench.strategies.chain import packages, parse, strategies

ADAPTERS = [name for name, kind in strategies().items() if hasattr(kind, "library")]


@pytest.mark.parametrize("name", ADAPTERS)
def test_a_run_notes_the_library_s_version(name: str) -> None:
    """The library stands beside the strategy with its version; without it there is one line that names the extra."""
    kind = strategies()[name]
    try:
        installed = version(kind.library)
    except PackageNotFoundError:
        with pytest.raises(MissingExtra, match=rf"is not installed: pip install 'ctxbench\[{kind.extra}\]'"):
            kind()
    else:
        assert packages(parse(name)) == {name: f"{kind.library} {installed}"}
