"""The bytes of an ONNX file without the values of its large tensors.

Protobuf parses and copies all weights before anything can be dropped, which takes seconds and several times the memory
of the file. Here the messages ModelProto, GraphProto and TensorProto are walked field by field (protobuf's wire format:
a key of field number and kind, then a number of 7 bits per byte, 4 or 8 bytes, or a length and so many bytes).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

_GRAPH_OF_MODEL, _INITIALIZER_OF_GRAPH = 7, 5
_VALUES = {4, 5, 6, 7, 9, 10, 11}
"""Fields of TensorProto with values: float, int32, string, int64, raw, double, uint64."""
_BYTES = 2
MOST_FIELDS = 300_000
"""How many fields a message may have: operators, tensors and what is said of them; each is walked."""
_FIXED = {1: 8, 5: 4}


def skim(data: memoryview, kept: int) -> bytes:
    """The message, where fields of values longer than ``kept`` bytes are left out.

    Raises:
        ValueError: this is no protobuf message, or it ends too early.
    """
    return _copied(data, lambda number, part: _graph(part, kept) if number == _GRAPH_OF_MODEL else None)


def _graph(data: memoryview, kept: int) -> bytes:
    def tensor(number: int, part: memoryview) -> bytes | None:
        return b"" if number in _VALUES and len(part) > kept else None

    def initializer(number: int, part: memoryview) -> bytes | None:
        return _copied(part, tensor, drop=True) if number == _INITIALIZER_OF_GRAPH and len(part) > kept else None

    return _copied(data, initializer)


def _copied(data: memoryview, change: Callable[[int, memoryview], bytes | None], drop: bool = False) -> bytes:
    """The message with changed fields of bytes; ``drop`` leaves out those that become empty."""
    parts: list[memoryview | bytes] = []
    for number, key, start, end in _fields(data):
        new = None if start < 0 else change(number, data[start:end])
        if new is None:
            parts.append(data[key:end])
        elif new or not drop:
            parts += [_varint(number << 3 | _BYTES), _varint(len(new)), new]
    return b"".join(parts)


def _fields(data: memoryview) -> Iterator[tuple[int, int, int, int]]:
    """Number, where its key stands, where its bytes start (-1 where it has none), where it ends."""
    place, size, count = 0, len(data), 0
    while place < size:
        key, count = place, count + 1
        if count > MOST_FIELDS:
            raise ValueError(f"more than {MOST_FIELDS} fields of a message")
        code, place = _number(data, place)
        number, kind = code >> 3, code & 7
        start = -1
        if kind == _BYTES:
            length, start = _number(data, place)
            place = start + length
        elif kind == 0:
            _, place = _number(data, place)
        elif kind in _FIXED:
            place += _FIXED[kind]
        else:
            raise ValueError(f"field of kind {kind} at byte {key}")
        if place > size or not number:
            raise ValueError(f"it ends {place - size} bytes too early" if number else f"no field at byte {key}")
        yield number, key, start, place


def _number(data: memoryview, place: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        if place >= len(data):
            raise ValueError("it ends in the middle of a number")
        byte = data[place]
        place += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, place
    raise ValueError(f"a number of more than 10 bytes at byte {place}")


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)
