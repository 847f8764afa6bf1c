"""Hooks that run on the import of a host, in every Python process of an environment.

``setup.py`` copies this file into ``site-packages``, with ``nas_ext.pth`` that calls :func:`install`.

- ``fairseq_cli``: OpenMP threads wait without spinning, see :func:`wait_passively`.
- ``fairseq``, in its commands: ``fairseq_ext`` is imported, so that ``--arch mos_transformer`` needs no ``--user-dir``.
- ``torchvision``: a CUDA build with a CPU torch is repaired, see :mod:`nas_core.torchvision_fix`.

A failing hook prints one line on stderr.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False  # of typing, which would have to be imported
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType


def wait_passively() -> None:
    """Let waiting OpenMP threads sleep, unless the environment sets their policy. Call it before importing torch."""
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
    """Finder that adds the hooks to the modules of other finders."""

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
        print(f"nas-ext: {name} is imported without nas-ext ({type(error).__name__}: {error})", file=sys.stderr)


def install() -> None:
    if not any(getattr(finder, "of_nas_ext", False) for finder in sys.meta_path):
        sys.meta_path.insert(0, _OnImport())
