"""Figures between markers on any page follow the results."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.page.__main__ import main
from benchmarks.page.figures import figures
from benchmarks.page.markers import Markers
from benchmarks.page.results import Results
from nas_core.errors import DataError, UnknownChoiceError


@pytest.fixture(scope="module")
def results() -> Results:
    return Results()


def filled(text: str, folder: Path, results: Results, name: str = "README.md") -> str:
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    return Markers(results, folder).filled(file)


def test_figures_stand_between_their_markers(tmp_path: Path, results: Results) -> None:
    largest = figures(results)["translation.largest"]
    empty = "and <!-- figure: queries.nb201_hat --><!-- /figure -->"
    text = f"BLEU <!-- figure: translation.largest -->0.0<!-- /figure -->\n{empty}."
    once = filled(text, tmp_path, results)
    assert f"<!-- figure: translation.largest -->{largest}<!-- /figure -->\nand " in once
    assert filled(once, tmp_path, results) == once


def test_a_table_links_to_the_page_of_results(tmp_path: Path, results: Results) -> None:
    text = "# A\n\n<!-- table: headlines -->\nNOTHING YET\n<!-- /table -->\n\nwords\n"
    above = filled(text, tmp_path, results)
    assert above.startswith("# A\n\n<!-- table: headlines -->\n| what | ours | compared with | measured by |\n")
    assert above.endswith(" |\n<!-- /table -->\n\nwords\n") and "NOTHING YET" not in above
    assert above.count("](docs/results.md#") == 9
    assert filled(text, tmp_path, results, "docs/how-to/x.md").count("](../results.md#") == 9


def test_code_is_left_alone(tmp_path: Path, results: Results) -> None:
    text = "`<!-- figure: KEY -->x<!-- /figure -->`\n\n```text\n<!-- table: KEY -->\n```\n"
    assert filled(text, tmp_path, results) == text


def test_an_unknown_key_is_an_error_with_the_closest(tmp_path: Path, results: Results) -> None:
    with pytest.raises(UnknownChoiceError, match=r"unknown figure of README.md .*Did you mean 'translation.largest'"):
        filled("a <!-- figure: translation.larges -->1<!-- /figure -->", tmp_path, results)
    with pytest.raises(UnknownChoiceError, match=r"unknown table of README\.md"):
        filled("<!-- table: nine -->\n<!-- /table -->", tmp_path, results)


@pytest.mark.parametrize("before", ["", "words\n", "- ", "  ", "> "])
def test_a_figure_that_begins_a_line_is_an_error(before: str, tmp_path: Path, results: Results) -> None:
    with pytest.raises(DataError, match="begins a line"):
        filled(f"{before}<!-- figure: translation.largest -->1<!-- /figure -->", tmp_path, results)
    assert filled("| <!-- figure: translation.largest -->1<!-- /figure --> |", tmp_path, results)


@pytest.mark.parametrize(
    "text",
    [
        "a <!-- figure: translation.largest -->1",
        "1<!-- /figure -->",
        "<!-- table: headlines -->\n",
        "a <!-- figure: a <!-- figure: b -->1<!-- /figure -->",
        "a <!--figure: translation.largest-->1<!--/figure-->",
        "a <!-- Figure: translation.largest -->1<!-- /Figure -->",
        "a <!--\nfigure: translation.largest -->1<!-- /figure -->",
    ],
)
def test_a_marker_without_its_end_is_an_error(text: str, tmp_path: Path, results: Results) -> None:
    with pytest.raises((DataError, UnknownChoiceError), match=r"README.md"):
        filled(text, tmp_path, results)


def test_check_names_what_is_stale_and_writes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = "a <!-- figure: translation.largest -->0.0<!-- /figure -->"
    (tmp_path / "docs" / "results").mkdir(parents=True)
    (tmp_path / "docs" / "results" / "old.svg").write_text("")
    (tmp_path / "README.md").write_text(text)
    assert main(["--check", "--root", str(tmp_path)]) == 1
    said = capsys.readouterr().out
    for line in ("README.md is stale", "docs/results.md is stale", "front.svg is stale", "old.svg is not of this page"):
        assert line in said
    assert (tmp_path / "README.md").read_text() == text and not (tmp_path / "docs" / "results.md").exists()


def test_what_is_written_passes_the_check(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "README.md").write_text("a <!-- figure: translation.largest -->0.0<!-- /figure -->")
    assert main(["--root", str(tmp_path)]) == 0
    assert main(["--check", "--root", str(tmp_path)]) == 0
    (tmp_path / "README.md").write_text("a <!-- figure: nothing -->0<!-- /figure -->")
    assert main(["--check", "--root", str(tmp_path)]) == 2
    assert "unknown figure" in capsys.readouterr().err


def test_the_catalogue_is_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--figures"]) == 0
    assert "linear-attention.crossing: " in capsys.readouterr().out
