"""The page in a browser: the inspector says what `ctxbench show` says, by mouse, keys and links; nothing executes."""

from pathlib import Path
from typing import Any

from ctxbench.harness.diff import step_diff
from ctxbench.harness.folder.run import Run
from ctxbench.reports.html.inspector import CUTS
from tests.reports.html.builders import STRATEGIES
from tests.reports.html.conftest import Opening

ALL_FATES = """async ([name, strategies]) => {
  const all = [...document.querySelectorAll("script.packed")];
  const at = [...document.getElementById("conversation").options].findIndex((each) => each.value === name);
  const conversation = JSON.parse(await inflated(all[at].textContent));
  const text = (runs) => runs.reduce((made, from, at) => at % 2 ? made
    : made + conversation.pieces.slice(from, from + runs[at + 1]).join(""), "");
  return conversation.strategies.map((strategy) => {
    const result = new Result(conversation, strategy), size = conversation.messages.id.length;
    const order = [...strategy.at.keys()];
    order.sort((a, b) => (a * 7919) % 13 - (b * 7919) % 13); // forwards and backwards
    const found = [];
    for (const step of order) {
      found[step] = result.diff(step).map(({ number, status, origin, at }) => {
        const messages = number < size ? conversation.messages : strategy.written;
        return [status, origin, at, text(messages.text[number < size ? number : number - size])];
      });
    }
    return found;
  });
}"""


def shown(page: Any, box: str) -> list[str]:
    """The rows of a list that can be seen."""
    return [row.inner_text().replace("\n", " ") for row in page.locator(f"#{box} .row").all()]


def test_as_show_has_it(opening: Opening, run: Run, page_of: Path) -> None:
    """Under every strategy, in any order of steps: the same messages, diffs and texts as `ctxbench show` has."""
    page = opening(page_of, "#tab=inspector")
    found = page.evaluate(ALL_FATES, ["talk 2", list(STRATEGIES)])
    for strategy, steps in zip(STRATEGIES, found, strict=True):
        for step in (0, 2, 5, 6, 11):
            at, rows = step_diff(run, "talk 2", strategy, step), steps[step]
            wanted = [[fate.status, fate.origin, -1 if fate.place is None else fate.place] for fate in at.messages]
            assert [row[:3] for row in rows] == wanted, (strategy, step)
            texts = [fate.message.text[: CUTS[0]] for fate in at.messages if not fate.message.calls]
            assert [row[3] for row, fate in zip(rows, at.messages, strict=True) if not fate.message.calls] == texts
    fates = {word for steps in found for rows in steps for row in rows for word in row[:2]}
    assert fates == {"same", "again", "new", "summarised", "dropped", "recorded", "replaced", "written"}


def test_a_link_opens_a_step(opening: Opening, run: Run, page_of: Path) -> None:
    """The anchor that others link to opens that step; its counts are those of `ctxbench show`."""
    page = opening(page_of, "#conversation=talk%201&strategy=summary%28threshold%3D4%29&step=7")
    page.locator("#status:not(:empty)").wait_for()
    at = step_diff(run, "talk 1", "summary(threshold=4)", 7)
    told = page.locator("#status").inner_text()
    assert f"step 7 of 0 to {at.steps - 1}" in told
    assert f"{at.sent} messages sent, {at.said} in the history" in told
    assert f"{at.count('summarised')} summarised" in told
    assert f"{at.tokens_sent:,} of {at.tokens_full:,} tokens" in told
    page.evaluate("location.hash = '#conversation=talk+2&step=1'")  # as forms write a space
    page.locator("#status", has_text="step 1 of 0 to").wait_for()
    assert page.locator("#conversation").input_value() == "talk 2"
    assert page.locator("#strategy").input_value() == "summary(threshold=4)"  # as it was


def test_by_keys(opening: Opening, page_of: Path) -> None:
    """Arrows go through messages and steps; a chosen message is shown whole, and stays chosen as steps go by."""
    page = opening(page_of, "#conversation=talk%200&strategy=none&step=3")
    page.locator("#status:not(:empty)").wait_for()
    page.locator("#history").focus()
    for key in ("ArrowDown", "ArrowDown", "ArrowRight"):
        page.keyboard.press(key)
    assert page.locator("#number").input_value() == "4"
    assert "u0 · same" in page.locator("#message h3").inner_text()
    assert page.locator("#message pre").inner_text() == "Point 0 of talk 0. Order AB-1000."
    assert page.locator("#sent .row[aria-selected=true]").count() == 1
    assert page.locator("#history").get_attribute("aria-activedescendant") == "history-1"
    page.keyboard.press("ArrowLeft")
    assert page.locator("#number").input_value() == "3"
    page.keyboard.press("End")
    assert page.locator("#history .row[aria-selected=true]").get_attribute("data-at") == "7"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "message"
    page.keyboard.press("Escape")
    assert page.evaluate("document.activeElement.id") == "history"
    page.wait_for_timeout(400)
    assert page.evaluate("location.hash").endswith("&step=3")


def test_evidence_is_marked(opening: Opening, page_of: Path) -> None:
    """With a question chosen, what its answer rests on is marked wherever it is, and what of it is sent is counted."""
    page = opening(page_of, "#conversation=talk%200&strategy=window%28max_tokens%3D300%29")
    page.locator("#status:not(:empty)").wait_for()
    page.locator("#probe").select_option(index=1)
    assert "evidence: 0 of 2 sent · answer: AB-1000" in page.locator("#status").inner_text()
    rows = [row for row in shown(page, "history") if "evidence" in row]
    assert len(rows) == 2
    assert all(row.startswith("dropped") for row in rows)


def test_two_strategies_beside_each_other(opening: Opening, run: Run, page_of: Path) -> None:
    """The list on the left has what the other strategy sent at the step; what only one of them sent says so."""
    address = "#tab=inspector&conversation=talk%200&strategy=last_turn&step=11"
    page = opening(page_of, address)
    page.locator("#beside").select_option("none")
    for box, strategy in (("history", "none"), ("sent", "last_turn")):
        sent = [fate for fate in step_diff(run, "talk 0", strategy, 11).messages if fate.place is not None]
        title = page.locator(f"#{box}-title").inner_text()
        assert title.startswith(f"{strategy} sent ({len(sent)}, "), title
    rows = shown(page, "history")
    assert any("only here" in row for row in rows)
    assert not any("only here" in row for row in shown(page, "sent"))
    page.wait_for_function("() => location.hash.includes('beside=none')")
    again = opening(page_of, page.evaluate("location.hash"))
    assert again.locator("#history-title").inner_text().startswith("none sent (")


def test_jumps_to_where_something_happens(opening: Opening, run: Run, page_of: Path) -> None:
    """Each button goes to the next step of its kind, and is off where there is none."""
    page = opening(page_of, "#tab=inspector&conversation=talk%200&strategy=last_turn&step=0")
    page.locator("#status:not(:empty)").wait_for()

    def sends(step: int) -> set[str]:
        fates = step_diff(run, "talk 0", "last_turn", step).messages
        return {fate.message.id for fate in fates if fate.place is not None}

    lost = next(step for step in range(1, 12) if sends(step - 1) - sends(step))
    page.locator("#lost").click()
    assert page.locator("#number").input_value() == str(lost)
    assert page.locator("#limit").is_disabled()
    assert page.locator("#left").is_disabled(), "no question is chosen"
    page.locator("#number").fill("0")
    page.locator("#number").press("Enter")
    page.locator("#probe").select_option(index=1)
    page.locator("#number").fill("0")
    page.locator("#number").press("Enter")
    gone = next(step for step in range(1, 12) if {"u0", "t0"} & (sends(step - 1) - sends(step)))
    page.locator("#left").click()
    assert page.locator("#number").input_value() == str(gone)
    page.locator("#strategy").select_option("none")
    assert page.locator("#lost").is_disabled()
