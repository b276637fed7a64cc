"""The documentation of docs_qa: its passages, and the search results that a retriever puts together from them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal

from .world import Chapter, ProductSetting, Thing, World, title

Mode = Literal["mix", "local", "naive"]
# Characters of a result, from and to.
_LENGTHS: Mapping[Mode, tuple[int, int]] = {
    "mix": (41_000, 46_500),
    "local": (11_000, 15_000),
    "naive": (10_000, 14_000),
}
_LONGEST = 49_800
# Stands for the score of a passage until its place in a result is known.
_SCORE = "0.##"


class Pages:
    """Writer of passages about one world."""

    def __init__(self, world: World) -> None:
        self.world, self.rng, self.forms = world, world.rng, world.language.forms
        self._steps: dict[tuple[str, str], list[str]] = {}
        self._kinds: list[str] = []

    def passage(self, chapter: Chapter, thing: Thing) -> str:
        """Return a passage of any kind; all kinds are used once before any is used again."""
        if not self._kinds:
            self._kinds = [*_KINDS, "procedure", "behaviour"]
            self.rng.shuffle(self._kinds)
        kind = self._kinds.pop()
        if kind == "procedure":
            return self.procedure(chapter, self.rng.choice(chapter.goals))
        return _KINDS[kind](self, chapter, thing)

    def path(self, kind: str, chapter: Chapter, thing: Thing) -> str:
        """Return the place of a passage in the documentation."""
        return f"docs/{_FOLDERS[kind]}/{chapter.slug}/{thing.slug.replace('_', '-')}-{kind}.md"

    def steps(self, chapter: Chapter, goal: str) -> list[str]:
        """Return the steps of a procedure, the same each time."""
        key = (chapter.slug, goal)
        if key not in self._steps:
            thing = self.subject(chapter, goal)
            count = self.rng.randint(4, 6)
            indices = sorted(self.rng.sample(range(len(chapter.steps)), count))
            opening = self.world.text("first_step", page=self.world.page(chapter, thing))
            self._steps[key] = [opening, *(self.world.sentence(chapter.steps[at], chapter, thing) for at in indices)]
        return self._steps[key]

    def subject(self, chapter: Chapter, goal: str) -> Thing:
        """Return the thing that a procedure is about."""
        return max(chapter.things, key=lambda thing: sum(part in goal for part in _fragments(thing.name)))

    def procedure(self, chapter: Chapter, goal: str) -> str:
        """Return a procedure: prerequisites, steps, outcome."""
        world, thing = self.world, self.subject(chapter, goal)
        needs = [f"- {self.say('prerequisite', chapter, thing)}" for _ in range(self.rng.randint(2, 4))]
        steps = [f"{at}. {step}" for at, step in enumerate(self.steps(chapter, goal), 1)]
        return self._page(
            "procedure",
            chapter,
            thing,
            world.say("heading_procedure", chapter, thing, goal=goal),
            self._prose("overview", 2, chapter, thing),
            f"**{world.text('prerequisites_heading')}**\n\n" + "\n".join(needs),
            f"**{world.text('steps_heading')}**\n\n" + "\n".join(steps),
            self._prose("outcome", 3, chapter, thing),
            self.say("caution", chapter, thing),
        )

    def reference(self, chapter: Chapter, thing: Thing) -> str:
        """Return the settings of a thing as a table."""
        world = self.world
        settings = world.settings_of[chapter.slug, thing.slug][:]
        self.rng.shuffle(settings)
        rows = [self._row(setting) for setting in settings]
        return self._page(
            "reference",
            chapter,
            thing,
            world.say("heading_reference", chapter, thing),
            self.say("reference_intro", chapter, thing) + world.language.joint + self.say("behaviour", chapter, thing),
            "\n".join([world.text("settings_table"), *rows]),
            *(self._prose("setting_note", 2, chapter, thing) for _ in range(2)),
        )

    def trouble(self, chapter: Chapter, thing: Thing, first: int | None = None) -> str:
        """Return messages, their causes and remedies, with lines of a log; `first` is one that must be there."""
        world, parts = self.world, []
        start = self.rng.randrange(3) if first is None else first
        for at in (start, (start + self.rng.randint(1, 2)) % 3):
            symptom, cause, remedy = (world.clause(form, chapter, thing) for form in chapter.troubles[at])
            code = world.error_code(chapter, at)
            parts.append(world.text("message", code=code, symptom=symptom, cause=cause, remedy=remedy))
            parts.append(self._prose("trouble_note", 2, chapter, thing))
            parts.append("```\n" + "\n".join(sorted(self._log_line(chapter, thing) for _ in range(4))) + "\n```")
        return self._page("trouble", chapter, thing, world.say("heading_trouble", chapter, thing), *parts)

    def changes(self, chapter: Chapter, thing: Thing, version: str = "", line: str = "") -> str:
        """Return some versions with their dates and changes, newest first.

        `version` is among them, unless it is empty, and `line` is one of its changes.
        """
        world, parts = self.world, []
        numbers = set(self.rng.sample([number for number, _ in world.versions[-17:-1]], 3)) | {version}
        for number, day in reversed([release for release in world.versions if release[0] in numbers]):
            lines = [
                self.say("change", chapter, self.rng.choice(chapter.things)) for _ in range(self.rng.randint(2, 4))
            ]
            if line and number == version:
                lines.insert(self.rng.randint(0, len(lines)), line)
            head = world.text("version_heading", version=number, day=day)
            parts.append(f"**{head}**\n\n" + "\n".join(f"- {line}" for line in lines))
        return self._page("change", chapter, thing, world.say("heading_change", chapter, thing), *parts)

    def overview(self, chapter: Chapter, thing: Thing) -> str:
        """Return the definition of a thing."""
        heading = self.world.say("heading_overview", chapter, thing)
        return self._page("overview", chapter, thing, heading, *self._mixed("overview", chapter, thing))

    def behaviour(self, chapter: Chapter, thing: Thing) -> str:
        """Return how a thing behaves."""
        heading = self.world.say("heading_behaviour", chapter, thing)
        return self._page("behaviour", chapter, thing, heading, *self._mixed("behaviour", chapter, thing))

    def config(self, chapter: Chapter, thing: Thing) -> str:
        """Return a piece of a configuration file with notes."""
        world, lines = self.world, [f"{chapter.slug}:"]
        for section in self.rng.sample(chapter.things, 3):
            lines.append(f"  {section.slug}:")
            settings = self.rng.sample(world.settings_of[chapter.slug, section.slug], 2)
            lines += [f"    {setting.aspect.suffix}: {world.defaults[setting.key]}" for setting in settings]
        return self._page(
            "config",
            chapter,
            thing,
            world.say("heading_config", chapter, thing),
            self._prose("config_note", 2, chapter, thing),
            "```yaml\n" + "\n".join(lines) + "\n```",
            self._prose("setting_note", 3, chapter, thing),
            self._prose("behaviour", 2, chapter, thing),
        )

    def permission(self, chapter: Chapter, thing: Thing) -> str:
        """Return the permissions of the roles."""
        world, rows = self.world, []
        for role in self.rng.sample(world.roles, 5):
            rights = [world.once(f"right {at}", f"{thing.slug} {role}", "", self.forms["right"]) for at in range(5)]
            rows.append(f"| {role} | {' | '.join(rights)} |")
        return self._page(
            "permission",
            chapter,
            thing,
            world.say("heading_permission", chapter, thing),
            self._prose("permission_note", 2, chapter, thing),
            "\n".join([world.text("rights_table"), *rows]),
            self._prose("permission_note", 3, chapter, thing),
            self.say("caution", chapter, thing),
        )

    def api(self, chapter: Chapter, thing: Thing) -> str:
        """Return a call and its answer with notes."""
        world, rng = self.world, self.rng
        other = rng.choice([sibling for sibling in chapter.things if sibling is not thing]).slug
        request = world.text(
            "request", chapter_slug=chapter.slug, collection=f"{thing.slug.replace('_', '-')}s", other_slug=other
        )
        response = world.text(
            "response",
            slug=thing.slug,
            other_slug=other,
            id=self._serial(),
            state=rng.choice(self.forms["states"]),
            host=world.draw("host", "", chapter, thing),
            first_id=self._serial(),
            second_id=self._serial(),
            day=world.versions[rng.randrange(8, 14)][1],
            time=f"{rng.randint(6, 18):02d}:{rng.randint(0, 59):02d}",
        )
        return self._page(
            "api",
            chapter,
            thing,
            world.say("heading_api", chapter, thing),
            self._prose("api_note", 2, chapter, thing),
            request,
            response,
            self._prose("api_note", 3, chapter, thing),
            self._prose("behaviour", 2, chapter, thing),
        )

    def faq(self, chapter: Chapter, thing: Thing) -> str:
        """Return short questions and answers."""
        count = self.rng.randint(4, 6)
        parts = [self.say("faq", chapter, self.rng.choice(chapter.things)) for _ in range(count)]
        return self._page("faq", chapter, thing, self.world.say("heading_faq", chapter, thing), *parts)

    def case(self, chapter: Chapter, thing: Thing) -> str:
        """Return a report from a site."""
        world, forms = self.world, self.forms["case"]
        site, person = self.rng.choice(world.sites), self.rng.choice(world.people)
        sentences = [
            world.sentence(forms[at], chapter, thing, site=site, person=person)
            for at in sorted(self.rng.sample(range(len(forms)), 8))
        ]
        joint = world.language.joint
        return self._page(
            "case",
            chapter,
            thing,
            world.say("heading_case", chapter, thing, site=site),
            joint.join(sentences[:4]),
            joint.join(sentences[4:]),
            self._notes(chapter, thing)[0],
        )

    def say(self, key: str, chapter: Chapter, thing: Thing) -> str:
        """Return a sentence of the forms under this key about this thing."""
        return self.world.say(key, chapter, thing, serial=self._serial()[1:])

    def _mixed(self, key: str, chapter: Chapter, thing: Thing) -> list[str]:
        """Return paragraphs of two kinds of sentences, with notes of the chapter among them."""
        joint, (first, second) = self.world.language.joint, self._notes(chapter, thing)
        return [
            self._prose(key, 3, chapter, thing),
            first + joint + self._prose("behaviour", 3, chapter, thing),
            self.say("caution", chapter, thing),
            self._prose("behaviour", 3, chapter, thing) + joint + second,
        ]

    def _notes(self, chapter: Chapter, thing: Thing) -> list[str]:
        return [self.world.sentence(note, chapter, thing) for note in self.rng.sample(chapter.notes, 2)]

    def _row(self, setting: ProductSetting) -> str:
        world, aspect = self.world, setting.aspect
        low, high = min(aspect.values), max(aspect.values) * 2
        meaning = world.sentence(self.rng.choice(aspect.meanings), setting.chapter, setting.thing)
        version, _ = world.first_version(setting)
        return f"| `{setting.key}` | {world.value(setting)} | {low}–{high} | {version} | {meaning} |"

    def _log_line(self, chapter: Chapter, thing: Thing) -> str:
        clock = f"{self.rng.randint(0, 23):02d}:{self.rng.randint(0, 59):02d}:{self.rng.randint(0, 59):02d}"
        code = self.world.error_code(chapter, self.rng.randrange(3))
        return f"{clock} " + self.world.say("log", chapter, thing, serial=self._serial(), code=code)

    def _serial(self) -> str:
        return f"{self.rng.choice('ABCDEFGHKLMNPRSTUVWXYZ')}{self.rng.randrange(10**6):06d}"

    def _prose(self, key: str, count: int, chapter: Chapter, thing: Thing) -> str:
        language = self.world.language
        return language.joint.join(self.say(key, chapter, thing) for _ in range(count + language.extra_sentences))

    def _page(self, kind: str, chapter: Chapter, thing: Thing, heading: str, *parts: str) -> str:
        day = self.rng.choice(self.world.versions[4:14])[1]
        head = self.world.text("passage_head", path=self.path(kind, chapter, thing), score=_SCORE, day=day)
        return "\n\n".join([f"{head}\n## {heading}", *parts])


class Retriever:
    """Search engine of the documentation: puts passages together to results."""

    def __init__(self, pages: Pages) -> None:
        self._pages, self._world, self._rng = pages, pages.world, pages.rng

    def result(self, query: str, mode: Mode, chapter: Chapter, passages: list[str]) -> tuple[str, int]:
        """Return a result of its mode's usual length with these passages among others, and how many there are."""
        rng, world = self._rng, self._world
        least = rng.randint(*_LENGTHS[mode])
        parts = list(passages)
        size = sum(map(len, parts))
        if mode == "mix":
            parts.insert(0, self._graph(chapter))
            size += len(parts[0])
        while size < least:
            near = rng.random() < (0.45 if mode == "mix" else 0.85)
            source = chapter if near else rng.choice(world.language.chapters)
            passage = self._pages.passage(source, rng.choice(source.things))
            if size + len(passage) + 3_000 > _LONGEST:
                break
            # True is 1: in a mixed result the graph stays in front.
            parts.insert(rng.randint(mode == "mix", len(parts)), passage)
            size += len(passage)
        head = world.text("results_head", query=query, mode=mode, count=str(len(parts)))
        scores = sorted((rng.randint(41, 94) for _ in parts), reverse=True)
        passages = [
            f"[{at}] {part.replace(_SCORE, f'0.{score}', 1)}"
            for at, (part, score) in enumerate(zip(parts, scores, strict=True), 1)
        ]
        return "\n\n---\n\n".join([head, *passages]), len(parts)

    def _graph(self, chapter: Chapter) -> str:
        """Return the part that a graph retriever puts first: entities and their relations."""
        world, rng = self._world, self._rng
        chapters = [chapter, *rng.sample([other for other in world.language.chapters if other is not chapter], 3)]
        lines = [f"## {world.text('graph_heading')}\n", world.text("entities_table")]
        for source in chapters:
            lines += [
                f"| {title(thing)} | {world.text(f'kind_{thing.kind}')} | {self._pages.say('entity', source, thing)} |"
                for thing in source.things
            ]
        lines += ["", world.text("relations_table")]
        for source in chapters:
            for thing in rng.sample(source.things, 3):
                other = rng.choice([sibling for sibling in source.things if sibling is not thing])
                relation = world.say("relation", source, thing, other=other.name, others=other.plural)
                lines.append(f"| {title(thing)} | {title(other)} | {relation} |")
        return "\n".join(lines)


def _fragments(name: str) -> list[str]:
    """Return the words of an English name, every two neighbours of a Chinese one."""
    return [word[:5] for word in name.split()] if name.isascii() else [name[at : at + 2] for at in range(len(name) - 1)]


_KINDS: Mapping[str, Callable[[Pages, Chapter, Thing], str]] = {
    "overview": Pages.overview,
    "behaviour": Pages.behaviour,
    "reference": Pages.reference,
    "trouble": Pages.trouble,
    "change": Pages.changes,
    "config": Pages.config,
    "permission": Pages.permission,
    "api": Pages.api,
    "faq": Pages.faq,
    "case": Pages.case,
}
_FOLDERS: Mapping[str, str] = {
    "overview": "concepts",
    "behaviour": "concepts",
    "procedure": "howto",
    "reference": "reference",
    "trouble": "support",
    "change": "releases",
    "config": "reference",
    "permission": "admin",
    "api": "api",
    "faq": "support",
    "case": "field",
}
