"""Export of images from a file to a folder."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from benchmarks.parts.runs import export_images


def test_export_writes_one_folder_per_class(tmp_path: Path) -> None:
    pictures, labels = [b"first", b"second one", b"3"], [1, 0, 1]
    offsets = np.cumsum([0, *map(len, pictures)])
    data = np.frombuffer(b"".join(pictures), np.uint8)
    np.savez(
        tmp_path / "images.npz", data=data, offset=offsets, label=np.array(labels), classes=np.array(["ant", "bee"])
    )
    folder = export_images(tmp_path / "images.npz", "test", tmp_path / "folder")
    files = {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*.jpg")}
    assert files == {"test/bee/0.jpg": b"first", "test/ant/1.jpg": b"second one", "test/bee/2.jpg": b"3"}
    (tmp_path / "images.npz").unlink()
    assert export_images(tmp_path / "images.npz", "test", folder) == folder, "an existing split is not written again"
