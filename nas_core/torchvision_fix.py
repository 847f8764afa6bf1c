"""Import of a CUDA build of torchvision with a CPU build of torch.

PyPI has only CUDA builds of torchvision for Linux. With a CPU build of torch, ``import torchvision`` fails with
``operator torchvision::nms does not exist``. Declaring two operators makes transforms, data sets and models usable.
"""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from typing import Any

_SIGNATURE = "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"
_declared: list[object] = []  # the declarations live as long as the object that made them


def cuda_mismatch(package: str) -> bool:
    """Return whether a CUDA build of a package (torchvision or torchaudio) is installed with a CPU build of torch."""
    return _is_cuda_build(package) and not _is_cuda_build("torch")


def _is_cuda_build(package: str) -> bool:
    spec = importlib.util.find_spec(package)
    for folder in (spec and spec.submodule_search_locations) or ():
        try:
            version = Path(folder, "version.py").read_text("utf-8")
        except OSError:
            continue
        return re.search(r"__version__ = '[^']*\+cu\d+'|^cuda\b.*= '\d", version, re.M) is not None
    return False


def repair() -> bool:
    """Declare the missing operators if torchvision is a CUDA build and torch is not. Call it before the import.

    Returns:
        True if the operators are declared.
    """
    if not _declared and cuda_mismatch("torchvision"):
        import torch

        library: Any = torch.library.Library("torchvision", "FRAGMENT")  # type: ignore[no-untyped-call]
        for operator in ("nms", "qnms"):
            if not hasattr(torch.ops.torchvision, operator):
                library.define(operator + _SIGNATURE)
        _declared.append(library)
    return bool(_declared)
