"""Search results of docs_qa: passages of the documentation, as a retriever would hand them over."""

from __future__ import annotations

from typing import Literal

from .pack import Area
from .pages import SCORE, Pages
from .world import title

Mode = Literal["mix", "local", "naive"]
_LONGEST = 49_800


class Retriever:
    """Puts passages together to results."""

    def __init__(self, pages: Pages) -> None:
        self._pages, self._world, self._rng = pages, pages.world, pages.rng

    def found(self, query: str, mode: Mode, area: Area, passages: list[str]) -> tuple[str, int]:
        """A result of its mode's usual length with these passages among others, and how many there are."""
        rng, labels = self._rng, self._world.pack.labels
        aim = {"mix": (41_000, 46_500), "local": (11_000, 15_000), "naive": (10_000, 14_000)}[mode]
        least = rng.randint(*aim)
        parts = list(passages)
        size = sum(map(len, parts))
        if mode == "mix":
            parts.insert(0, self._graph(area))
            size += len(parts[0])
        while size < least:
            near = area if rng.random() < (0.45 if mode == "mix" else 0.85) else rng.choice(self._world.pack.areas)
            passage = self._pages.passage(near, rng.choice(near.things))
            if size + len(passage) + 3_000 > _LONGEST:
                break
            parts.insert(rng.randint(mode == "mix", len(parts)), passage)
            size += len(passage)
        head = labels["found"].format(query=query, mode=mode, count=len(parts))
        scores = sorted((rng.randint(41, 94) for _ in parts), reverse=True)
        numbered = (
            f"[{at}] {part.replace(SCORE, f'0.{score}', 1)}"
            for at, (part, score) in enumerate(zip(parts, scores, strict=True), 1)
        )
        return "\n\n---\n\n".join([head, *numbered]), len(parts)

    def _graph(self, area: Area) -> str:
        """What a graph retriever puts first: entities and how they hang together."""
        labels = self._world.pack.labels
        areas = [area, *self._rng.sample([one for one in self._world.pack.areas if one is not area], 3)]
        lines = [f"## {labels['graph']}\n", labels["entities"], "|---|---|---|"]
        for one in areas:
            lines += [
                f"| {title(thing)} | {labels[thing.kind]} | {self._pages.say('entity', one, thing)} |"
                for thing in one.things
            ]
        lines += ["", labels["relations"], "|---|---|---|"]
        for one in areas:
            for thing in self._rng.sample(one.things, 3):
                other = self._rng.choice([each for each in one.things if each is not thing])
                line = self._world.say("relation", one, thing, other=other.name, others=other.plural)
                lines.append(f"| {title(thing)} | {title(other)} | {line} |")
        return "\n".join(lines)
