"""Hooks that run when fairseq or torchvision is imported, in every Python process of an environment.

``setup.py`` copies this file into ``site-packages``, together with ``nas_ext.pth``, which calls :func:`install`.

- ``fairseq_cli``: waiting OpenMP threads sleep, see :func:`wait_passively`.
- ``fairseq``, in its commands: ``fairseq_ext`` is imported, so that ``--arch mos_transformer`` needs no ``--user-dir``.
- ``torchvision``: a CUDA build is made usable with a CPU build of torch, see :mod:`nas_core.torchvision_fix`.

A hook that fails prints one line on standard error.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False  # of typing, which would have to be imported
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType


def wait_passively() -> None:
    """Set ``OMP_WAIT_POLICY`` so that waiting OpenMP threads sleep, unless the environment sets a policy.

    Call it before importing torch.
    """
    import os

    if "GOMP_SPINCOUNT" not in os.environ:
        os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")


def _register_with_fairseq() -> None:
    if "fairseq_cli" in sys.modules:
        import importlib

        global registering
        registering = True
        try:
            importlib.import_module("fairseq_ext")
        finally:
            registering = False


def _repair_torchvision() -> None:
    from nas_core.torchvision_fix import repair

    repair()


registering = False
_BEFORE = {"fairseq_cli": wait_passively, "torchvision": _repair_torchvision}
_AFTER = {"fairseq": _register_with_fairseq}


class _OnImport:
    """Import finder that runs the hooks before and after a module is executed."""

    of_nas_ext = True
    asks = False

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if self.asks or (fullname not in _BEFORE and fullname not in _AFTER):
            return None
        self.asks = True
        try:
            others = (
                finder.find_spec(fullname, path, target)
                for finder in sys.meta_path
                if finder is not self and hasattr(finder, "find_spec")
            )
            spec = next(filter(None, others), None)
        finally:
            self.asks = False
        if spec is None or spec.loader is None:
            return spec
        execute = spec.loader.exec_module

        def exec_module(module: ModuleType) -> None:
            _call(_BEFORE, fullname)
            execute(module)
            _call(_AFTER, fullname)

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


def _call(actions: dict[str, Callable[[], None]], name: str) -> None:
    try:
        if name in actions:
            actions[name]()
    except Exception as error:
        print(f"nas-ext: the hook for the import of {name} failed ({type(error).__name__}: {error})", file=sys.stderr)


def install() -> None:
    if not any(getattr(finder, "of_nas_ext", False) for finder in sys.meta_path):
        sys.meta_path.insert(0, _OnImport())
