"""Every picture of the pages is what its program draws, and stands on a page with words for who cannot see it."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree

import pytest

from tests.toys import ROOT
from tools.pictures import NAMES
from tools.pictures.style import svg_of

FOLDER = ROOT / "docs" / "pictures"
PAGES = sorted((ROOT / "docs").rglob("*.md"))
SHOWN = re.compile(r"!\[(?P<words>[^\]]*)\]\((?P<path>[^)\s]*pictures/(?P<name>\w+)\.svg)\)\n\n(?P<below>.?)")
HOSTS = ("http://www.w3.org/", "http://purl.org/", "http://creativecommons.org/")


def labels(svg: str) -> list[str]:
    """All that can be read in a picture, its title first."""
    return [text for element in ElementTree.fromstring(svg).iter() if (text := (element.text or "").strip())]


@pytest.mark.parametrize("name", NAMES)
def test_the_kept_picture_is_what_its_program_draws(name: str) -> None:
    kept, drawn = (FOLDER / f"{name}.svg").read_text(encoding="utf-8"), svg_of(name)
    again = f"draw it anew: python -m tools.pictures {name}"
    readable = labels(drawn)
    assert readable and readable == labels(kept), again
    shapes = [len(list(ElementTree.fromstring(svg).iter())) for svg in (drawn, kept)]
    assert max(shapes) <= 1.05 * min(shapes), again  # releases of matplotlib may group them differently


def test_pictures_load_nothing_and_tell_no_date() -> None:
    for file in FOLDER.glob("*.svg"):
        text = file.read_text(encoding="utf-8")
        links = [link for link in re.findall(r"https?://[^\s\"'<]+", text) if not link.startswith(HOSTS)]
        assert not links, file
        assert "<script" not in text and "dc:date" not in text, file


def test_every_file_has_a_program_and_every_program_a_file() -> None:
    assert {file.stem for file in FOLDER.glob("*.svg")} == set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_a_page_shows_it_with_words_and_a_caption(name: str) -> None:
    found = [(page, shown) for page in PAGES for shown in SHOWN.finditer(page.read_text(encoding="utf-8"))]
    uses = [(page, shown) for page, shown in found if shown["name"] == name]
    assert uses, f"no page shows {name}.svg"
    for page, shown in uses:
        assert len(shown["words"].split()) >= 8, f"{page}: say in words what {name} shows"
        assert (page.parent / shown["path"]).resolve() == FOLDER / f"{name}.svg"
        assert shown["below"] == "*", f"{page}: below {name} stands a caption in italics"
