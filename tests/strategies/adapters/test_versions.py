"""A run notes the versions of the libraries whose strategies it has."""

from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import pytest

from ctxbench.scenarios.errors import MissingExtra
from ctxbench.strategies.adapters import adapter, imported
from ctxbench.strategies.base import data
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


def test_an_older_library_is_too_old(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A library that is installed without the module, or the name in it, that is asked of it is too old, not missing;
    one that cannot be imported because of a library of its own says which."""
    (tmp_path / "oldlib").mkdir()
    (tmp_path / "oldlib" / "__init__.py").write_text("")
    (tmp_path / "oldlib" / "broken.py").write_text("import nowhere_at_all\n")
    (tmp_path / "old_lib-0.1.dist-info").mkdir()
    (tmp_path / "old_lib-0.1.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: old-lib\nVersion: 0.1\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(data("adapters"), "old", {"imports": {"oldlib": "old-lib"}})
    with pytest.raises(MissingExtra, match=r"^old-lib 0.1 is too old: it has no oldlib.hooks: pip install 'ctxbench\["):
        imported("oldlib.hooks")
    with pytest.raises(MissingExtra, match=r"^old-lib 0.1 lacks nowhere_at_all: pip install"):
        imported("oldlib.broken")

    @adapter(library="old-lib", family="window")
    def stale(services: Any) -> Any:
        return imported("oldlib").Agent()

    with pytest.raises(MissingExtra, match=r"^old-lib 0.1 is too old: it has no oldlib.Agent: pip install"):
        stale.open_step(None)
