"""Draw the pictures of the pages: ``python -m tools.pictures [NAME ..]``."""

from __future__ import annotations

import argparse
from pathlib import Path

from tools.pictures import NAMES
from tools.pictures.style import svg_of

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "pictures"


def main() -> None:
    """Draw the named pictures, or all."""
    parser = argparse.ArgumentParser(prog="python -m tools.pictures", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(NAMES)}; default: all")
    parser.add_argument("--out", type=Path, default=FOLDER, help="folder; default: docs/pictures")
    given = parser.parse_args()
    if unknown := sorted(set(given.names) - set(NAMES)):
        parser.error(f"no picture {', '.join(unknown)}; expected some of {', '.join(NAMES)}")
    given.out.mkdir(parents=True, exist_ok=True)
    for name in given.names or NAMES:
        (given.out / f"{name}.svg").write_text(svg_of(name), encoding="utf-8")
        print(given.out / f"{name}.svg")


if __name__ == "__main__":
    main()
