"""The page of the survey: what the script puts into it."""

from __future__ import annotations

from pathlib import Path

from tests.docs.scripts import script


def test_defects_stand_word_for_word(tmp_path: Path) -> None:
    """Each file under the first line of its docstring, in order; without any the page says so."""
    pages = script("survey_page")
    assert pages.defects(tmp_path) == "None is known.\n"
    (tmp_path / "b.py").write_text('"""Second."""\nprint(2)\n')
    (tmp_path / "a.py").write_text('"""First: it fails.\n\nMore.\n"""\nprint(1)\n')
    text = pages.defects(tmp_path)
    assert text.startswith('### First: it fails\n\n```python\n"""First: it fails.\n\nMore.\n"""\nprint(1)\n```\n')
    assert text.endswith('### Second\n\n```python\n"""Second."""\nprint(2)\n```\n')


def test_the_page_has_the_defects_that_are_there() -> None:
    """The page's last part is that of the files now; if not: `python scripts/survey_page.py`. All else stays."""
    pages = script("survey_page")
    text = pages.PAGE.read_text("utf-8")
    assert pages.page(text, {"defects": pages.defects}) == text
    renewed = pages.page(text, {"survey": lambda: "| a |", "defects": pages.defects})
    assert "<!-- table: survey -->\n\n| a |\n" in renewed
    assert renewed.startswith(text[:100])
