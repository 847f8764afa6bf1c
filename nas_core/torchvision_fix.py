"""Lets a CUDA build of torchvision be imported beside a CPU build of torch.

The package index offers torchvision for Linux as a CUDA build only. Beside a CPU torch its compiled part does not load
and `import torchvision` (and with it timm, torchmetrics, pytorch-lightning) stops with ``operator torchvision::nms does
not exist``, because shape functions are registered for operators that were never declared. Declaring these two
operators is enough for transforms, data sets and models; calling them still fails, as nothing implements them.
"""

from __future__ import annotations

import importlib.abc
import importlib.util
import re
import sys
from pathlib import Path
from typing import Any

__all__ = ["apply_torchvision_fix", "fix_torchvision_on_import", "torchvision_mismatch"]

_SIGNATURE = "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"
# The declarations live as long as the object that made them.
_declared: list[object] = []


def torchvision_mismatch() -> bool:
    """Whether a CUDA build of torchvision is installed beside a torch built without CUDA; imports no torchvision."""
    spec = importlib.util.find_spec("torchvision")
    if spec is None or not spec.submodule_search_locations:
        return False
    version_file = Path(spec.submodule_search_locations[0]) / "version.py"
    if not version_file.is_file() or not re.search(r"__version__ = '[^']*\+cu\d+'", version_file.read_text("utf-8")):
        return False

    import torch

    return torch.version.cuda is None


def apply_torchvision_fix() -> bool:
    """Declare the missing operators if, and only if, the mismatch is there; call it before importing torchvision.

    Returns:
        Whether the fix is in force.
    """
    if _declared:
        return True
    if "torchvision" in sys.modules or not torchvision_mismatch():
        return False

    import torch

    library: Any = torch.library.Library("torchvision", "FRAGMENT")  # type: ignore[no-untyped-call]
    for operator in ("nms", "qnms"):
        if not hasattr(torch.ops.torchvision, operator):
            library.define(operator + _SIGNATURE)
    _declared.append(library)
    return True


class _OnImport(importlib.abc.MetaPathFinder):
    """Finds nothing; it is asked before torchvision is imported."""

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> None:
        if fullname == "torchvision" and self in sys.meta_path:
            sys.meta_path.remove(self)
            apply_torchvision_fix()


def fix_torchvision_on_import() -> None:
    """Have :func:`apply_torchvision_fix` called when torchvision is imported, if it ever is: until then neither
    torchvision nor torch is, which NNI's tuners, for whose start there is a time limit, have no need of."""
    if "torchvision" not in sys.modules and not any(isinstance(finder, _OnImport) for finder in sys.meta_path):
        sys.meta_path.insert(0, _OnImport())
