"""What a folder of ``fairseq-preprocess`` says about its data."""

from __future__ import annotations

from pathlib import Path

from fairseq.data import Dictionary
from fairseq.data.data_utils import infer_language_pair

from nas_core.errors import DataError

__all__ = ["vocabulary_sizes"]


def vocabulary_sizes(folder: Path) -> tuple[int, int] | None:
    """Entries of the source and of the target dictionary, special symbols included; twice those of the one that
    ``--only-source`` leaves; None if there is no dictionary.

    Raises:
        DataError: a dictionary cannot be read, or which of two is the source's cannot be told.
    """
    found = {path.name.split(".")[1]: path for path in sorted(folder.glob("dict.*.txt"))}
    if not found:
        return (_size(alone),) * 2 if (alone := folder / "dict.txt").exists() else None
    sizes = {language: _size(path) for language, path in found.items()}
    pair = infer_language_pair(str(folder))
    if all(language in sizes for language in pair):
        return sizes[pair[0]], sizes[pair[1]]
    if len(set(sizes.values())) == 1:
        return (next(iter(sizes.values())),) * 2
    listed = ", ".join(f"{language} ({size})" for language, size in sizes.items())
    raise DataError(
        f"{folder} has dictionaries of {listed}, and no data that"
        " says which is the source's; give --source-vocab and --target-vocab"
    )


def _size(path: Path) -> int:
    try:
        return len(Dictionary.load(str(path)))
    except Exception as error:  # fairseq raises Exception itself for a wrong encoding
        reason = " ".join(str(error).split())[:200]
        raise DataError(f"{path} is no dictionary of fairseq-preprocess ({reason}); write the folder anew") from None
