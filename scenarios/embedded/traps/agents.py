"""Traps in tool calls and their results."""

from __future__ import annotations

from random import Random

from ...model import Conversation, Tool, ToolCall
from ..script import Script

_CITIES = (
    Tool("weather", "Weather of a city.", '{"type":"object","properties":{"city":{"type":"string"}}}'),
    Tool("trains", "Next train to a city.", '{"type":"object","properties":{"to":{"type":"string"}}}'),
    Tool("rooms", "Free rooms in a city.", '{"type":"object","properties":{"city":{"type":"string"}}}'),
)
_SHELL = (Tool("run", "Runs a shell command.", '{"type":"object","properties":{"command":{"type":"string"}}}'),)


def parallel_tool_calls() -> Conversation:
    """Three calls in one message whose results come in another order, twice."""
    script = Script("traps/parallel_tool_calls", language="en", start="2026-02-09T11:00:00", tools=_CITIES)
    script.note("trap", "three calls in one message, results in another order: calls and results must stay together")
    script.system("You plan short journeys. Use the tools, several at once where you can.")
    script.user("I have Friday off. Is Graz worth it? Weather, train and a room, please.")
    calls = [
        script.call("weather", {"city": "Graz"}),
        script.call("trains", {"to": "Graz"}),
        script.call("rooms", {"city": "Graz"}),
    ]
    script.assistant("", calls)
    script.result(calls[2], '{"city":"Graz","free":[{"name":"Pension Murblick","price":84}]}')
    script.result(calls[0], '{"city":"Graz","friday":{"low":3,"high":11,"rain_mm":0.4}}')
    train = script.result(calls[1], '{"to":"Graz","train":"RJ 559","departs":"07:58","platform":"6A"}')
    script.assistant("Dry enough, up to 11 degrees. RJ 559 at 07:58, and Pension Murblick has a room for 84 euros.")
    script.user("Compare with Linz.")
    again = [
        script.call("rooms", {"city": "Linz"}),
        script.call("weather", {"city": "Linz"}),
        script.call("trains", {"to": "Linz"}),
    ]
    script.assistant("The same three for Linz.", again)
    script.result(again[1], '{"city":"Linz","friday":{"low":1,"high":7,"rain_mm":9.8}}')
    script.result(again[2], '{"to":"Linz","train":"WB 904","departs":"08:12","platform":"11"}')
    room = script.result(again[0], '{"city":"Linz","free":[{"name":"Gasthof Kettenbrücke","price":71}]}')
    script.assistant("Linz is wetter and colder, the room is cheaper by 13 euros.")
    script.user("Graz then.")
    script.assistant("Graz it is. Shall I keep the room?")
    script.probe("From which platform does the train to Graz leave?", ["6A", "platform 6A"], [train], "single_hop")
    script.probe("Which place in Linz had a free room?", ["Gasthof Kettenbrücke"], [room], "single_hop")
    return script.done()


def unanswered_call() -> Conversation:
    """A call that nothing answered: the tool hung, and the user went on."""
    script = Script("traps/unanswered_call", language="en", start="2026-02-10T13:00:00", tools=_CITIES)
    script.note("trap", "a tool call is never answered and the user goes on: most providers refuse the bare history")
    script.user("What is the next train to Brno?")
    script.assistant("One moment.", [script.call("trains", {"to": "Brno"})])
    script.wait(minutes=6)
    script.user("Still there? Never mind the train, I take the car. Is it freezing in Brno?")
    pair = [script.call("weather", {"city": "Brno"}), script.call("rooms", {"city": "Brno"})]
    script.assistant("", pair)
    frost = script.result(pair[0], '{"city":"Brno","tonight":{"low":-6,"road":"black ice on the D1 near Vyškov"}}')
    script.assistant("Yes, 6 below zero tonight, and black ice on the D1. The room search gave no answer.")
    script.user("Then I stay at home.")
    script.assistant("A good decision.")
    script.probe("Near which town is there black ice on the D1?", ["Vyškov"], [frost], "single_hop")
    script.probe("At what time does the next train to Brno leave?", [], [], "unanswerable")
    return script.done()


def enormous_result() -> Conversation:
    """One tool result of some 400 000 characters with one fact in its middle."""
    script = Script("traps/enormous_result", language="en", start="2026-02-11T03:12:00", tools=_SHELL)
    script.note(
        "trap", "one tool result is larger than most context windows; the one line that matters is in its middle"
    )
    script.system("You are on call for a storage cluster. Find the cause, then say what to do.")
    script.user("Writes fail since three. Look at the log of the coordinator.")
    log = script.tool_call("run", {"command": "cat /var/log/coordinator/2026-02-11.log"}, result=_log(400_000))
    script.assistant("The coordinator put one shard into read-only mode halfway through. The disk below it is full.")
    script.user("Which disk? I need the serial for the ticket.")
    script.assistant("It is in the line with `forced read-only`; I quote it in the ticket.")
    script.probe("What is the serial of the full disk?", ["ZX-4471-QD"], [log], "single_hop")
    script.probe("Which shard was forced into read-only mode?", ["shard 107", "107"], [log], "single_hop")
    return script.done()


def _log(length: int) -> str:
    rng = Random("traps/enormous_result")
    frames = (
        "INFO  compaction of shard {a} done in {b} ms, {c} keys, {d} tombstones dropped",
        "INFO  replica 10.{e}.{f}.{a} caught up, lag {b} ms, offset {c}",
        "DEBUG lease of shard {a} renewed by node-{e} until +{f}s (term {d})",
        "WARN  slow write on shard {a}: {b} ms, queue {d}, client 10.{f}.{e}.{a}",
        "INFO  snapshot s-{c} of shard {a} uploaded, {d} MiB in {e} parts",
        "DEBUG gossip from node-{e}: {a} alive, {f} suspect, digest {c:x}",
    )
    lines: list[str] = []
    size, clock = 0, 0
    while size < length:
        clock += rng.randint(200, 2900)
        stamp = f"{clock // 3_600_000:02d}:{clock // 60_000 % 60:02d}:{clock // 1000 % 60:02d}.{clock % 1000:03d}"
        numbers = {
            name: rng.randint(2, top) for name, top in zip("abcdef", (96, 900, 9_000_000, 4000, 24, 60), strict=True)
        }
        lines.append(f"{stamp} {rng.choice(frames).format(**numbers)}")
        size += len(lines[-1]) + 1
    middle = len(lines) // 2
    stamp = lines[middle].split()[0]
    lines.insert(middle, f"{stamp} ERROR shard 107 forced read-only: disk ZX-4471-QD at 99.8 per cent")
    return "\n".join(lines)


def tool_only_turns() -> Conversation:
    """An agent that acts ten times without a word from the user, and without a word to them."""
    script = Script("traps/tool_only_turns", language="en", start="2026-02-12T16:00:00", tools=_SHELL)
    script.note("trap", "ten calls in a row with no text at all: a window that counts user turns has nowhere to cut")
    script.system("You mend small repositories. Act; report at the end.")
    script.user("The build of `tidegauge` is red. Mend it.")
    steps = (
        ("git status --short", " M pyproject.toml\n?? notes.txt"),
        ("python -m build 2>&1 | tail -n 3", "error: version '2.4.0rc' is not a release\nBUILD FAILED"),
        ("grep -n version pyproject.toml", '7:version = "2.4.0rc"'),
        ("git log --oneline -3", "9f31c2a bump\n77ab01e harbour table for Wick\n20cd9e4 first import"),
        ("sed -i 's/2.4.0rc/2.4.0rc1/' pyproject.toml", ""),
        ("python -m build 2>&1 | tail -n 3", "error: package data 'tables/wick.csv' is missing\nBUILD FAILED"),
        ("git show 77ab01e --stat | tail -n 2", " data/wick.csv | 412 +++\n 1 file changed"),
        ("git mv data/wick.csv tables/wick.csv", ""),
        ("python -m build 2>&1 | tail -n 1", "Successfully built tidegauge-2.4.0rc1-py3-none-any.whl"),
        ("python -m pytest -q | tail -n 1", "188 passed in 6.02s"),
    )
    shown = [script.tool_call("run", {"command": command}, result) for command, result in steps]
    script.assistant("Green. The version was not a valid one, and a table lay in the wrong folder.")
    script.probe("Which commit added the harbour table for Wick?", ["77ab01e"], [shown[3]], "single_hop")
    script.probe("How many tests passed at the end?", ["188"], [shown[9]], "single_hop")
    return script.done()


def tool_call_bad_json() -> Conversation:
    """Arguments that are cut off, not JSON, an array, or empty."""
    script = Script("traps/tool_call_bad_json", language="en", start="2026-02-13T09:45:00", tools=_SHELL)
    script.note("trap", "tool arguments that are no JSON object: cut off, bare text, an array, empty")
    script.user("How much space is left on the build machine?")
    for number, (arguments, answer) in enumerate(
        (
            ('{"command": "df -h /srv', "error: arguments are not valid JSON (end of input at column 24)"),
            ("df -h /srv", "error: arguments are not valid JSON (column 1)"),
            ('["df", "-h", "/srv"]', "error: arguments must be an object"),
            ("", "error: no arguments"),
        )
    ):
        call = ToolCall(id=f"bad_{number}", name="run", arguments=arguments)
        script.assistant("" if number else "I will look.", [call])
        script.result(call, answer)
    right = script.tool_call("run", {"command": "df -h /srv"}, "/dev/nvme1n1  1.8T  1.7T  61G  97% /srv")
    script.assistant("61G are left, the disk is at 97 per cent. Sorry for the detour.")
    script.user("Tight. Thank you.")
    script.assistant("I would clear the old wheels first.")
    script.probe("Which device holds /srv?", ["/dev/nvme1n1", "nvme1n1"], [right], "single_hop")
    return script.done()
