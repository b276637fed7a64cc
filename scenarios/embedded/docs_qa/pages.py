"""The passages of the invented documentation of docs_qa."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from .pack import Area, Thing
from .world import Setting, World

SCORE = "0.##"
"""Stands for the score of a passage until its place in a result is known."""


class Pages:
    """Writes passages about one world."""

    def __init__(self, world: World) -> None:
        self.world, self.rng, self.labels = world, world.rng, world.pack.labels
        self._steps: dict[tuple[str, str], list[str]] = {}
        self._kinds: list[str] = []

    def passage(self, area: Area, thing: Thing) -> str:
        """A passage of any kind: all kinds once before any comes twice."""
        if not self._kinds:
            self._kinds = [*_KINDS, "procedure", "behaviour"]
            self.rng.shuffle(self._kinds)
        kind = self._kinds.pop()
        return (
            self.procedure(area, self.rng.choice(area.goals))
            if kind == "procedure"
            else _KINDS[kind](self, area, thing)
        )

    def path(self, kind: str, area: Area, thing: Thing) -> str:
        """Where in the documentation a passage stands."""
        return f"docs/{_FOLDERS[kind]}/{area.slug}/{thing.slug.replace('_', '-')}-{kind}.md"

    def steps(self, area: Area, goal: str) -> list[str]:
        """The steps of a procedure, the same each time."""
        known = (area.slug, goal)
        if known not in self._steps:
            thing = self.subject(area, goal)
            count = self.rng.randint(4, 6)
            chosen = sorted(self.rng.sample(range(len(area.steps)), count))
            opening = self.labels["open"].format(page=self.world.page(area, thing))
            rest = [self.world.fill(area.steps[at], area, thing) for at in chosen]
            self._steps[known] = [opening, *rest]
        return self._steps[known]

    def subject(self, area: Area, goal: str) -> Thing:
        """What a procedure is about."""
        return max(area.things, key=lambda thing: sum(part in goal for part in _fragments(thing.name)))

    def procedure(self, area: Area, goal: str) -> str:
        """How to do something: what is needed, the steps, what happens then."""
        world, thing = self.world, self.subject(area, goal)
        needs = [f"- {self.say('prereq', area, thing)}" for _ in range(self.rng.randint(2, 4))]
        steps = [f"{at}. {step}" for at, step in enumerate(self.steps(area, goal), 1)]
        return self._page(
            "procedure",
            area,
            thing,
            world.say("heading_procedure", area, thing, goal=goal),
            self._prose("overview", 2, area, thing),
            f"**{self.labels['before']}**\n\n" + "\n".join(needs),
            f"**{self.labels['steps']}**\n\n" + "\n".join(steps),
            self._prose("outcome", 3, area, thing),
            self.say("caution", area, thing),
        )

    def reference(self, area: Area, thing: Thing) -> str:
        """The settings of a thing as a table."""
        world = self.world
        settings = world.keys_of[area.slug, thing.slug][:]
        self.rng.shuffle(settings)
        rows = [self._row(setting) for setting in settings]
        return self._page(
            "reference",
            area,
            thing,
            world.say("heading_reference", area, thing),
            self.say("reference_intro", area, thing) + world.pack.joint + self.say("behaviour", area, thing),
            "\n".join([self.labels["settings"], "|---|---|---|---|---|", *rows]),
            *(self._prose("setting_note", 2, area, thing) for _ in range(2)),
        )

    def trouble(self, area: Area, thing: Thing, first: int | None = None) -> str:
        """Messages, their causes and remedies, with lines of a log; `first` is one that must be there."""
        world, parts = self.world, []
        start = self.rng.randrange(3) if first is None else first
        for at in (start, (start + self.rng.randint(1, 2)) % 3):
            symptom, cause, remedy = (world.clause(text, area, thing) for text in area.troubles[at])
            parts.append(
                self.labels["trouble"].format(code=world.code(area, at), symptom=symptom, cause=cause, remedy=remedy)
            )
            parts.append(self._prose("trouble_note", 2, area, thing))
            parts.append("```\n" + "\n".join(sorted(self._log_line(area, thing) for _ in range(4))) + "\n```")
        return self._page("trouble", area, thing, world.say("heading_trouble", area, thing), *parts)

    def changes(self, area: Area, thing: Thing, wanted: str = "", line: str = "") -> str:
        """Some versions with their dates and what they changed, the newest first, and `line` for the `wanted` one."""
        world, parts = self.world, []
        chosen = set(self.rng.sample([version for version, _ in world.versions[-17:-1]], 3)) | {wanted}
        for version, day in reversed([made for made in world.versions if made[0] in chosen]):
            lines = [self.say("change", area, self.rng.choice(area.things)) for _ in range(self.rng.randint(2, 4))]
            if line and version == wanted:
                lines.insert(self.rng.randint(0, len(lines)), line)
            head = self.labels["version"].format(version=version, day=day)
            parts.append(f"**{head}**\n\n" + "\n".join(f"- {line}" for line in lines))
        return self._page("change", area, thing, world.say("heading_change", area, thing), *parts)

    def overview(self, area: Area, thing: Thing) -> str:
        """What a thing is."""
        heading = self.world.say("heading_overview", area, thing)
        return self._page("overview", area, thing, heading, *self._mixed("overview", area, thing))

    def behaviour(self, area: Area, thing: Thing) -> str:
        """How a thing behaves."""
        heading = self.world.say("heading_behaviour", area, thing)
        return self._page("behaviour", area, thing, heading, *self._mixed("behaviour", area, thing))

    def config(self, area: Area, thing: Thing) -> str:
        """A piece of a configuration file."""
        world, lines = self.world, [f"{area.slug}:"]
        for one in self.rng.sample(area.things, 3):
            lines.append(f"  {one.slug}:")
            chosen = self.rng.sample(world.keys_of[area.slug, one.slug], 2)
            lines += [f"    {setting.aspect.suffix}: {world.values[setting.key]}" for setting in chosen]
        return self._page(
            "config",
            area,
            thing,
            world.say("heading_config", area, thing),
            self._prose("config_note", 2, area, thing),
            "```yaml\n" + "\n".join(lines) + "\n```",
            self._prose("setting_note", 3, area, thing),
            self._prose("behaviour", 2, area, thing),
        )

    def permission(self, area: Area, thing: Thing) -> str:
        """Who may do what."""
        world, marks = self.world, self.labels["marks"].split("|")
        rows = []
        for role in self.rng.sample(world.roles, 5):
            cells = " | ".join(
                world.once(f"right {at}", f"{thing.slug} {role}", "mark", tuple(marks)) for at in range(5)
            )
            rows.append(f"| {role} | {cells} |")
        return self._page(
            "permission",
            area,
            thing,
            world.say("heading_permission", area, thing),
            self._prose("permission_note", 2, area, thing),
            "\n".join([self.labels["rights"], "|---|---|---|---|---|---|", *rows]),
            self._prose("permission_note", 3, area, thing),
            self.say("caution", area, thing),
        )

    def api(self, area: Area, thing: Thing) -> str:
        """A call and its answer."""
        slug = thing.slug.replace("_", "-")
        other = self.rng.choice([one for one in area.things if one is not thing])
        body = [
            f'  "id": "{self._serial()}",',
            f'  "type": "{thing.slug}",',
            f'  "state": "{self.rng.choice(("ready", "waiting", "partial", "active"))}",',
            f'  "node": "{self.world.gap("host", "", area, thing)}",',
            f'  "{other.slug}": ["{self._serial()}", "{self._serial()}"],',
            f'  "updated": "{self.world.versions[self.rng.randrange(8, 14)][1]}T{self.rng.randint(6, 18):02d}:'
            f'{self.rng.randint(0, 59):02d}:00Z"',
        ]
        return self._page(
            "api",
            area,
            thing,
            self.world.say("heading_api", area, thing),
            self._prose("api_note", 2, area, thing),
            f"```http\nGET /v2/{area.slug}/{slug}s/{{id}}?expand={other.slug}\n```",
            "```json\n{\n" + "\n".join(body) + "\n}\n```",
            self._prose("api_note", 3, area, thing),
            self._prose("behaviour", 2, area, thing),
        )

    def faq(self, area: Area, thing: Thing) -> str:
        """Short questions and answers."""
        parts = []
        for _ in range(self.rng.randint(4, 6)):
            question, answer = self.say("faq", area, self.rng.choice(area.things)).split(" || ")
            parts.append(f"**{question}**\n{answer}")
        return self._page("faq", area, thing, self.world.say("heading_faq", area, thing), *parts)

    def case(self, area: Area, thing: Thing) -> str:
        """A report from a site."""
        site, person = self.rng.choice(self.world.sites), self.rng.choice(self.world.people)
        frames = self._in_order("case", 8)
        forms = [self.world.fill(frame, area, thing, site=site, person=person) for frame in frames]
        joint = self.world.pack.joint
        heading = self.world.say("heading_case", area, thing, site=site)
        return self._page(
            "case", area, thing, heading, joint.join(forms[:4]), joint.join(forms[4:]), self._notes(area, thing)[0]
        )

    def _mixed(self, group: str, area: Area, thing: Thing) -> list[str]:
        """Paragraphs of two kinds of sentences, a note of the area among them."""
        joint, (first, second) = self.world.pack.joint, self._notes(area, thing)
        return [
            self._prose(group, 3, area, thing),
            first + joint + self._prose("behaviour", 3, area, thing),
            self.say("caution", area, thing),
            self._prose("behaviour", 3, area, thing) + joint + second,
        ]

    def _notes(self, area: Area, thing: Thing) -> list[str]:
        return [self.world.fill(note, area, thing) for note in self.rng.sample(area.notes, 2)]

    def _row(self, setting: Setting) -> str:
        world, aspect = self.world, setting.aspect
        low, high = min(aspect.values), max(aspect.values) * 2
        meaning = world.fill(self.rng.choice(aspect.meanings), setting.area, setting.thing)
        since = world.versions[world.since(setting)][0]
        return f"| `{setting.key}` | {world.value(setting)} | {low}–{high} | {since} | {meaning} |"

    def _log_line(self, area: Area, thing: Thing) -> str:
        clock = f"{self.rng.randint(0, 23):02d}:{self.rng.randint(0, 59):02d}:{self.rng.randint(0, 59):02d}"
        code = self.world.code(area, self.rng.randrange(3))
        return f"{clock} " + self.world.say("log", area, thing, serial=self._serial(), code=code)

    def _serial(self) -> str:
        return f"{self.rng.choice('ABCDEFGHKLMNPRSTUVWXYZ')}{self.rng.randrange(10**6):06d}"

    def say(self, group: str, area: Area, thing: Thing) -> str:
        """A sentence for this place about this thing."""
        return self.world.say(group, area, thing, serial=self._serial()[1:])

    def _prose(self, group: str, count: int, area: Area, thing: Thing) -> str:
        return self.world.pack.joint.join(self.say(group, area, thing) for _ in range(count + self.world.pack.more))

    def _in_order(self, group: str, count: int) -> list[str]:
        frames = self.world.pack.frames[group]
        return [frames[at] for at in sorted(self.rng.sample(range(len(frames)), count))]

    def _page(self, kind: str, area: Area, thing: Thing, heading: str, *parts: str) -> str:
        day = self.rng.choice(self.world.versions[4:14])[1]
        where = self.labels["where"].format(path=self.path(kind, area, thing), score=SCORE, day=day)
        return "\n\n".join([f"{where}\n## {heading}", *parts])


def _fragments(name: str) -> list[str]:
    """The words of an English name, every two neighbours of a Chinese one."""
    return [word[:5] for word in name.split()] if name.isascii() else [name[at : at + 2] for at in range(len(name) - 1)]


_KINDS: Mapping[str, Callable[[Pages, Area, Thing], str]] = {
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
