"""Every claim, in the order of its number."""

from __future__ import annotations

from collections.abc import Iterable

from ...scenarios.errors import SpecError
from ...scenarios.spec import nearest
from . import caching, clock, compressing, cost, counting, facts, focus, searching, storing, tokens
from .claim import Claim

SUBJECTS = (tokens, cost, storing, facts, counting, focus, caching, compressing, searching, clock)

CLAIMS: dict[str, Claim] = {
    each.id: each
    for each in sorted((each for subject in SUBJECTS for each in subject.CLAIMS), key=lambda each: each.id)
}


def chosen(names: Iterable[str]) -> list[Claim]:
    """Those that are named, in their order; all if none is. Raises SpecError for one that there is not."""
    wanted = {name.strip().upper() for name in names}
    for name in sorted(wanted):
        if name not in CLAIMS:
            raise SpecError(f"unknown claim {name!r}{nearest(name, dict.fromkeys(CLAIMS))}; there are C01 to C30")
    return [each for name, each in CLAIMS.items() if name in wanted or not wanted]
