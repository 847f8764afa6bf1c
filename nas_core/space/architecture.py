"""One point of a search space, as an immutable value."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from nas_core.errors import ArchitectureError
from nas_core.files.reading import read_json
from nas_core.files.writing import write_json

Option = int | float | str
Gene = Option | tuple[Option, ...]

FORMAT = "nas-ext/architecture"
VERSION = 1


class Architecture(Mapping[str, Gene]):
    """Immutable, hashable mapping of gene names to options.

    The value of a gene is one option for the whole network, or a tuple with one option per existing layer:
    ``architecture["decoder.ffn_dim"]`` is ``(1024, 2048)`` for a decoder of two layers. Equal networks are equal
    values.
    """

    __slots__ = ("_genes", "_hash")

    def __init__(self, genes: Mapping[str, Any]) -> None:
        self._genes: dict[str, Gene] = {name: _freeze(name, genes[name]) for name in sorted(genes)}
        self._hash = hash(tuple(self._genes.items()))

    def __getitem__(self, name: str) -> Gene:
        try:
            return self._genes[name]
        except KeyError:
            raise ArchitectureError(
                f"architecture has no gene {name!r}; it has: {', '.join(self._genes) or 'none'}"
            ) from None

    def __contains__(self, name: object) -> bool:
        return name in self._genes

    def __iter__(self) -> Iterator[str]:
        return iter(self._genes)

    def __len__(self) -> int:
        return len(self._genes)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Architecture) and self._genes == other._genes

    def __repr__(self) -> str:
        return f"Architecture({self._genes!r})"

    def __reduce__(self) -> tuple[type[Architecture], tuple[dict[str, Gene]]]:
        return Architecture, (dict(self._genes),)

    def number(self, name: str) -> int:
        """Return the value of an integer gene of the whole network."""
        value = self[name]
        if not isinstance(value, int):
            raise ArchitectureError(f"gene {name!r} is {value!r}, expected one integer")
        return value

    def numbers(self, name: str) -> tuple[int, ...]:
        """Return the values of a gene with one integer per layer."""
        value = self[name]
        if not isinstance(value, tuple) or not all(isinstance(v, int) for v in value):
            raise ArchitectureError(f"gene {name!r} is {value!r}, expected one integer per layer")
        return value  # type: ignore[return-value]

    @property
    def key(self) -> str:
        """Hexadecimal digest of 10 characters, equal on every machine."""
        return hashlib.sha256(json.dumps(self.to_dict(), sort_keys=True).encode()).hexdigest()[:10]

    def to_dict(self) -> dict[str, Any]:
        return {name: list(gene) if isinstance(gene, tuple) else gene for name, gene in self._genes.items()}

    def save(self, path: str | Path, **extra: Any) -> None:
        """Write the architecture and ``extra`` keys, such as metrics, as JSON."""
        write_json(path, {"format": FORMAT, "version": VERSION, "genes": self.to_dict(), **extra})

    @classmethod
    def load(cls, path: str | Path) -> Architecture:
        """Read an architecture from a JSON file.

        Raises:
            ArchitectureError: the file has another format or a newer version.
        """
        return cls.from_json(read_json(path), source=str(path))

    @classmethod
    def from_json(cls, content: Any, source: str = "architecture") -> Architecture:
        if not isinstance(content, dict) or not isinstance(content.get("genes"), dict):
            raise ArchitectureError(f'{source} is not an architecture; expected {{"format": "{FORMAT}", "genes": ..}}')
        version = content.get("version", VERSION)
        if content.get("format", FORMAT) != FORMAT or not isinstance(version, int) or version > VERSION:
            raise ArchitectureError(
                f"{source} has format {content.get('format')!r}, version {content.get('version')!r};"
                f" this release reads {FORMAT!r} up to version {VERSION}; upgrade nas-ext"
            )
        return cls(content["genes"])


def _freeze(name: str, value: Any) -> Gene:
    options = value if isinstance(value, list | tuple) else (value,)
    if any(isinstance(option, bool) or not isinstance(option, int | float | str) for option in options):
        raise ArchitectureError(
            f"gene {name!r} is {value!r}; expected a number, a string, or a list with one of them per layer"
        )
    return tuple(options) if options is value else value
