"""A page as its readers get it: what it loads, its figures, and the evaluations behind their points."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from typing import Any


class ReadPage(HTMLParser):
    """Elements that load something, the JSON that the page's script reads, and all text a person sees."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.loaded: list[str] = []
        self.scripts: list[str] = []
        self.data: dict[str, Any] = {}
        self.policy = ""
        self.text = ""
        self._inside: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        settings = dict(attrs)
        self.loaded += [str(settings[name]) for name in ("src", "href", "srcset", "data", "action") if name in settings]
        if tag == "meta" and settings.get("http-equiv") == "Content-Security-Policy":
            self.policy = str(settings["content"])
        if tag in ("script", "style", "title"):
            self._inside.append((tag, settings))

    def handle_endtag(self, tag: str) -> None:
        if self._inside and self._inside[-1][0] == tag:
            self._inside.pop()

    def handle_data(self, data: str) -> None:
        if not self._inside:
            self.text += data
        elif self._inside[-1][0] == "script":
            attributes = self._inside[-1][1]
            if attributes.get("type") == "application/json":
                self.data[str(attributes["id"])] = json.loads(data)
            else:
                self.scripts.append(data)

    @property
    def figures(self) -> list[dict[str, Any]]:
        """In their order on the page."""
        return [content for name, content in self.data.items() if name.endswith("-figure")]

    def traces(self, figure: int) -> dict[str, dict[str, Any]]:
        return {trace["name"]: trace for trace in self.figures[figure]["data"]}
