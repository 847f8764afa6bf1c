"""Repairs a CUDA build of torchvision beside a CPU build of torch, at the moment torchvision is imported.

PyPI offers torchvision for Linux as a CUDA build only. Beside a CPU torch its compiled part does not load and
``import torchvision`` (and with it timm, torchmetrics, pytorch-lightning) stops with ``operator torchvision::nms does
not exist``, because shape functions are registered for operators that were never declared. Declaring these two
operators is enough for transforms, data sets and models; calling them still fails, as nothing implements them.

``nas_core.torchvision_fix`` uses this file, and copies it into environments where every program shall be repaired: it
needs nothing of nas-ext, and imports nothing when Python starts.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False  # of typing, which would have to be imported
if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any

__all__ = ["declare", "install", "is_cuda_build", "is_declared"]

_SIGNATURE = "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"
_declared: list[object] = []  # the declarations live as long as the object that made them


def is_cuda_build(package: ModuleSpec | None) -> bool:
    """Whether this torch, torchvision or torchaudio was built for CUDA, as its version file says; imports nothing of
    it."""
    import os
    import re

    for folder in (package and package.submodule_search_locations) or ():
        try:
            with open(os.path.join(folder, "version.py"), encoding="utf-8") as file:
                return re.search(r"__version__ = '[^']*\+cu\d+'|^cuda\b.*= '\d", file.read(), re.M) is not None
        except OSError:
            pass
    return False


def is_declared() -> bool:
    """Whether :func:`declare` has done something here."""
    return bool(_declared)


def declare() -> None:
    """Declare the missing operators if torch was built without CUDA."""
    import torch

    if not _declared and torch.version.cuda is None:
        library: Any = torch.library.Library("torchvision", "FRAGMENT")  # type: ignore[no-untyped-call]
        for operator in ("nms", "qnms"):
            if not hasattr(torch.ops.torchvision, operator):
                library.define(operator + _SIGNATURE)
        _declared.append(library)


class _OnImport:
    """Finds a CUDA build of torchvision, as the finders after it do, and declares the operators before it runs.

    To look for torchvision without importing it, as many packages do, costs no import of torch.
    """

    repairs_torchvision = True

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != "torchvision":
            return None
        others = (finder.find_spec(fullname, path, target) for finder in sys.meta_path if finder is not self)
        spec = next(filter(None, others), None)
        if spec is None or spec.loader is None or not is_cuda_build(spec):
            return None
        run = spec.loader.exec_module

        def exec_module(module: ModuleType) -> None:
            if self in sys.meta_path:
                sys.meta_path.remove(self)
            declare()
            run(module)

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


def install() -> None:
    """Have torchvision repaired when it is imported, if it ever is, and if it needs it."""
    waiting = any(getattr(finder, "repairs_torchvision", False) for finder in sys.meta_path)
    if "torchvision" not in sys.modules and not waiting:
        sys.meta_path.insert(0, _OnImport())
