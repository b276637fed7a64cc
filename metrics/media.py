"""Tokens of images, sounds, films and pages, by the rule that the provider of a model publishes.

The rules are data (`data/media.toml`), each with its source. What they do not give is missing, never 0.
"""

from __future__ import annotations

from bisect import bisect_left
from math import ceil, floor, sqrt

import msgspec

from ctxbench.scenarios.model import Media

from .models import FamilyRule, family_rule
from .value import Missing


class _Rule(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="rule"):
    """Base of the rules of images: tokens by width, height and detail; None for a detail that is not published."""


class Grid(_Rule, frozen=True, tag="grid"):
    """Anthropic's: a token for each patch of the image, scaled down to the largest size within both limits."""

    patch: int
    edge: int  # most pixels of a side, padded to whole patches
    budget: int  # most tokens

    def tokens(self, width: int, height: int, _detail: str) -> int | None:
        if self._fits(width, height):
            return self._patches(width, height)
        long, short = max(width, height), min(width, height)

        def scaled(side: int) -> tuple[int, int]:
            return side, max(round(side * short / long), 1)

        # The longest side that fits: all shorter ones do.
        fits = bisect_left(range(2, long), True, key=lambda side: not self._fits(*scaled(side))) + 1
        return self._patches(*scaled(fits))

    def _patches(self, width: int, height: int) -> int:
        return ceil(width / self.patch) * ceil(height / self.patch)

    def _fits(self, width: int, height: int) -> bool:
        longest = ceil(max(width, height) / self.patch) * self.patch
        return longest <= self.edge and self._patches(width, height) <= self.budget


class Patches(_Rule, frozen=True, tag="patches"):
    """OpenAI's newer one: patches of 32 pixels of the image, scaled down to a budget, times a multiplier."""

    budget: int
    multiplier: float
    details: tuple[str, ...]  # details that these limits are published for
    edge: int = 2048

    def tokens(self, width: int, height: int, detail: str) -> int | None:
        if detail not in self.details:
            return None
        within = min(1.0, self.edge / max(width, height))
        wide, high = floor(width * within) or 1, floor(height * within) or 1
        if ceil(wide / 32) * ceil(high / 32) > self.budget:
            scale = sqrt(32 * 32 * self.budget / (wide * high))
            columns, rows = wide * scale / 32, high * scale / 32
            scale *= min((floor(columns) or 1) / columns, (floor(rows) or 1) / rows)
            # The scale makes one side whole patches: rounding keeps it from falling one pixel short.
            wide, high = round(wide * scale), round(high * scale)
        patches = min(ceil(wide / 32) * ceil(high / 32), self.budget)
        return ceil(round(patches * self.multiplier, 6))


class Tiles(_Rule, frozen=True, tag="tiles"):
    """OpenAI's older one: a base, and each tile of 512 pixels of the image within 2,048, its short side within 768."""

    base: int
    each: int

    def tokens(self, width: int, height: int, detail: str) -> int | None:
        if detail == "low":
            return self.base
        scale = min(1.0, 2048 / max(width, height))
        scale = min(scale, 768 / min(width, height))
        # A side that is scaled to just one of the limits must not exceed it by a rounding of floats.
        columns, rows = (ceil(round(side * scale, 6) / 512) for side in (width, height))
        return self.base + self.each * columns * rows


class Crops(_Rule, frozen=True, tag="crops"):
    """Rule of Gemini 2: a fixed number of tokens for a small image, and for each crop of a larger one."""

    small: int
    each: int

    def tokens(self, width: int, height: int, _detail: str) -> int | None:
        if max(width, height) <= self.small:
            return self.each
        unit = max(floor(min(width, height) / 1.5), 1)
        return self.each * ceil(width / unit) * ceil(height / unit)


class Flat(_Rule, frozen=True, tag="flat"):
    """Rule of Gemini 3: a fixed number of tokens for each resolution, whatever the size."""

    details: dict[str, int]

    def tokens(self, _width: int, _height: int, detail: str) -> int | None:
        return self.details.get(detail.lower().removeprefix("media_resolution_").replace("unspecified", ""))


class MediaRule(FamilyRule, frozen=True, forbid_unknown_fields=True):
    """Published rule of a family of models. None is what is not published."""

    source: str
    image: Grid | Patches | Tiles | Crops | Flat
    audio: float | None = None  # tokens a second
    video: float | None = None  # tokens a second
    page: int | None = None  # tokens a page of a PDF file

    def tokens(self, medium: Media) -> int | Missing:
        """Return the tokens of one image, sound, film or file, or why they are not known."""
        match medium.kind:
            case "image":
                if not isinstance(self.image, Flat) and not (medium.width and medium.height):
                    return Missing("undefined", "no known size")
                counted = self.image.tokens(medium.width or 1, medium.height or 1, medium.detail)
                return Missing("unsupported", "no published rule for its detail") if counted is None else counted
            case "audio" | "video":
                rate, size = (self.audio if medium.kind == "audio" else self.video), medium.seconds
            case _:
                rate, size = self.page, medium.pages
        if rate is None:
            return Missing("unsupported", "no published rule")
        return Missing("undefined", "no known length") if size is None else ceil(rate * size)


def media_rule(model: str) -> MediaRule | None:
    """Return the rule of a model's family, by its name with or without `provider/`; None if none is published."""
    return family_rule("media", MediaRule, model)


def media_tokens(model: str, medium: Media) -> int | Missing:
    """Return the tokens that a model's provider counts for an image, sound, film or file, or why not."""
    rule = media_rule(model)
    return Missing("unsupported", "no published rule") if rule is None else rule.tokens(medium)
