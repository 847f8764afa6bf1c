"""Files with wrong values, flipped bytes, missing ends and what else a disk or a hand makes of them."""

from __future__ import annotations

import copy
import io
import json
import random
from pathlib import Path
from typing import Any

import torch
import yaml

ODD: tuple[Any, ...] = (
    None, True, "", "x", "a" * 3000, "$\\foo{$", "<script>alert(1)</script>", "../../x", "${env:HOME}", "=1+1",
    "\x00", "2026-13-45", "nan", -1, 0, 1, 3, 0.5, -1e308, float("nan"), float("inf"), 2**31, 2**62, 10**30,
    [], [1], [[1], [1, 2]], [0] * 1000, [[]], ["x", 1], {}, {"a": 1}, {"1": {}}, [{}], [None],
)  # fmt: skip
"""Values in place of good ones."""
_TOKENS = (b"\xff\xfe", b"\x00" * 64, b"[" * 2000, b'{"a":' * 300, b"NaN", b"-1", b"null", b"1e999", b"*a")


def damaged(path: Path, stream: random.Random) -> bytes:
    """The content of a file with one or several faults: in its values where its kind is known, else in its bytes."""
    content = path.read_bytes()
    change = _BY_SUFFIX.get(path.suffix)
    if change is None or stream.random() < 0.4:
        return _bytes(content, stream)
    return change(content, stream)


def _bytes(content: bytes, stream: random.Random) -> bytes:
    """Flipped bits, gaps, repeats, cut ends, foreign pieces."""
    changed = bytearray(content)
    for _ in range(stream.choice((1, 1, 1, 2, 5))):
        place, size, how = stream.randrange(len(changed) + 1), stream.randrange(1, 40), stream.randrange(8)
        if how < 3 and place < len(changed):
            changed[place] ^= 1 << stream.randrange(8)
        elif how == 3:
            del changed[place : place + size]
        elif how == 4:
            changed[place:place] = changed[place : place + size] * stream.choice((1, 50))
        elif how == 5:
            changed[place:place] = stream.choice(_TOKENS)
        elif how == 6:
            del changed[place:]
        else:
            changed[place : place + size] = stream.randbytes(size)
    return bytes(changed) if stream.random() < 0.97 else stream.randbytes(stream.choice((0, 1, 500)))


def _value(value: Any, stream: random.Random) -> Any:
    """A copy with one part replaced, removed, doubled or renamed."""
    full = copy.deepcopy(value)
    parts = [(holder, key) for holder, key in _places(full)]
    if not parts or stream.random() < 0.03:
        return copy.deepcopy(stream.choice(ODD))
    holder, key = stream.choice(parts)
    how = stream.randrange(8)
    if how == 0:
        del holder[key]
    elif how == 1 and isinstance(holder, list):
        holder.insert(key, copy.deepcopy(holder[key]))
    elif how == 1 and isinstance(key, str):
        holder[stream.choice((key + "x", "", "<b>", key.upper()))] = holder.pop(key)
    elif how == 2 and isinstance(holder[key], int | float) and not isinstance(holder[key], bool):
        holder[key] = stream.choice((-holder[key], str(holder[key]), [holder[key]], holder[key] * 10**6))
    else:
        holder[key] = copy.deepcopy(stream.choice(ODD))
    return full


def _places(value: Any) -> list[tuple[Any, Any]]:
    keys = list(value) if isinstance(value, dict) else list(range(len(value))) if isinstance(value, list) else []
    below = [place for key in keys if isinstance(value[key], dict | list) for place in _places(value[key])[:400]]
    return [(value, key) for key in keys] + below


def _json(content: bytes, stream: random.Random) -> bytes:
    return json.dumps(_value(json.loads(content), stream)).encode()


def _jsonl(content: bytes, stream: random.Random) -> bytes:
    lines = content.splitlines()
    place = stream.choice((0, stream.randrange(len(lines))))
    lines[place] = _json(lines[place], stream)
    return b"\n".join(lines) + b"\n"


def _yaml(content: bytes, stream: random.Random) -> bytes:
    return yaml.safe_dump(_value(yaml.safe_load(content), stream), sort_keys=False).encode()


def _checkpoint(content: bytes, stream: random.Random) -> bytes:
    """Values of a checkpoint; tensors are replaced whole."""
    buffer = io.BytesIO()
    torch.save(_value(torch.load(io.BytesIO(content), weights_only=True), stream), buffer)
    return buffer.getvalue()


_BY_SUFFIX = {
    ".json": _json, ".jsonl": _jsonl, ".yml": _yaml, ".yaml": _yaml, ".pt": _checkpoint,
}  # fmt: skip
