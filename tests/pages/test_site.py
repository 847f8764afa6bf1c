"""The site is built without a warning, and its pages load nothing from anywhere else."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LOADS = re.compile(
    r"<(?:script|img|iframe|source|video|audio|embed|object)\b[^>]*?\b(?:src|data|srcset)\s*=\s*[\"']?(?:https?:)?//[^\"'\s>]+"
    r"|<link\b(?=[^>]*\brel\s*=\s*[\"']?(?:stylesheet|preload|modulepreload|icon|preconnect|dns-prefetch))[^>]*?"
    r"\bhref\s*=\s*[\"']?(?:https?:)?//[^\"'\s>]+"
    r"|@import\s+(?:url\()?[\"']?(?:https?:)?//[^\"')\s]+"
    r"|url\(\s*[\"']?(?:https?:)?//[^\"')\s]+",
    re.IGNORECASE,
)
"""Markup that makes a browser load something without a click."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("mkdocs", reason="mkdocs is not installed; it comes with the extra 'dev'")
    folder = tmp_path_factory.mktemp("site")
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)],
        cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=280, check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"[-3000:]
    return folder


def test_no_page_loads_anything_from_another_host(site: Path) -> None:
    pages = sorted(site.rglob("*.html"))
    assert len(pages) > 20
    loaded = {
        f"{path.relative_to(site)}: {match.group()[:150]}"
        for path in [*pages, *site.rglob("*.css")]
        for match in LOADS.finditer(path.read_text(encoding="utf-8"))
    }
    assert not loaded, "\n".join(sorted(loaded))


def test_search_works_without_a_server(site: Path) -> None:
    """Browsers let no page of ``file://`` fetch a file; the index is a script instead."""
    assert (site / "search" / "search_index.js").exists()
