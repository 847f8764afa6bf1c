"""``python -m benchmarks.page``: write the page of results, its pictures, and the figures on other pages.

``--check`` writes nothing, names what is not as it would be written, and ends with 1 if there is any. ``--figures``
lists the catalogue: every key with its figure.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from benchmarks.page.document import page, sections, stamp
from benchmarks.page.figures import figures, headlines
from benchmarks.page.markers import Markers, pages
from benchmarks.page.pictures import save
from benchmarks.page.results import FOLDER, Results
from nas_core.errors import NasExtError
from nas_core.files import write_atomic

__all__ = ["main", "pictures", "texts"]

ROOT = Path(__file__).parents[2]
PNG = "front"
"""The picture that the README shows, where SVG is not shown everywhere."""


def texts(results: Results, root: Path) -> dict[Path, str]:
    """Every page that has figures, as it should be."""
    markers = Markers(results, root)
    found = {root / "docs" / "results.md": page(results, headlines(results))}
    return found | {path: markers.filled(path) for path in pages(root)}


def pictures(results: Results, root: Path) -> dict[Path, str]:
    """Every file with a picture, and the stamp of its data that it carries."""
    found = {}
    for section in sections(results).values():
        if section.picture:
            for kind in ("svg", "png") if section.picture.name == PNG else ("svg",):
                found[root / "docs" / "results" / f"{section.picture.name}.{kind}"] = stamp(results, section)
    return found


def stale(results: Results, root: Path) -> list[str]:
    """What is not as it would be written, in words."""
    found = []
    for path, text in texts(results, root).items():
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            found.append(f"{path.relative_to(root)} is stale")
    drawn = pictures(results, root)
    for path, data in drawn.items():
        if not path.exists() or data.encode() not in path.read_bytes():
            found.append(f"{path.relative_to(root)} is stale")
    folder = root / "docs" / "results"
    others = sorted(set(folder.iterdir()) - set(drawn)) if folder.exists() else []
    return [*found, *(f"{path.relative_to(root)} is not of this page" for path in others)]


def write(results: Results, root: Path) -> None:
    """Write what is not as it should be, and every picture."""
    for path, text in texts(results, root).items():
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            write_atomic(path, text)
            print(f"{path.relative_to(root)} written")
    drawn = {section.picture.name: section.picture for section in sections(results).values() if section.picture}
    for path, data in pictures(results, root).items():
        save(drawn[path.stem], results, path, data)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.page", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true", help="write nothing; 1 if something is stale")
    parser.add_argument("--figures", action="store_true", help="list keys and figures")
    parser.add_argument("--root", type=Path, default=ROOT, help="where README.md and docs are")
    parser.add_argument("--results", type=Path, default=FOLDER, help="folder of the JSON files")
    options = parser.parse_args(argv)
    results = Results(options.results)
    try:
        if options.figures:
            print("\n".join(f"{key}: {value}" for key, value in figures(results).items()))
            return 0
        if options.check:
            wrong = stale(results, options.root)
            print("\n".join([*wrong, "run python -m benchmarks.page"] if wrong else ["all figures are up to date"]))
            return int(bool(wrong))
        write(results, options.root)
    except NasExtError as error:
        print(f"benchmarks.page: error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
