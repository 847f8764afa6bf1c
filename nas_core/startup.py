"""What nas-ext does for a host at the moment the host is imported, in every Python of an environment.

``setup.py`` puts a copy of this file into ``site-packages``, with ``nas_ext.pth``, which calls :func:`install` when
Python starts. That imports nothing. When one of these packages is imported:

- ``fairseq_cli``, the package of fairseq's commands: OpenMP threads wait without spinning, see :func:`wait_passively`;
- ``fairseq``, in one of its commands: ``fairseq_ext`` is imported, so that ``--arch mos_transformer`` needs no
  ``--user-dir``. Other programs that import fairseq are left alone;
- ``torchvision``: a CUDA build beside a CPU build of torch is repaired, see :mod:`nas_core.torchvision_fix`.

Where nas-ext cannot do that, the host works as it does without nas-ext, and one line on stderr gives the reason.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False  # of typing, which would have to be imported
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType


def wait_passively() -> None:
    """Let OpenMP threads sleep while they wait for each other, unless the environment says how they wait.

    A waiting thread that spins takes the processor from the thread it waits for, where other programs run too. torch
    reads this setting when it is imported.
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
"""Whether ``fairseq_ext`` is being imported here, which its user did not ask for."""
_BEFORE = {"fairseq_cli": wait_passively, "torchvision": _repair_torchvision}
_AFTER = {"fairseq": _register_with_fairseq}
"""What is called before and after a module of this name is executed."""


class _OnImport:
    """Finds these modules as the other finders do, and has them executed with what is to be called.

    To look for a module without importing it, as many packages do, calls nothing.
    """

    of_nas_ext = True
    asks = False
    """Whether it asks the others, which may ask it in turn."""

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
    """Act on these modules when they are imported, if they ever are."""
    if not any(getattr(finder, "of_nas_ext", False) for finder in sys.meta_path):
        sys.meta_path.insert(0, _OnImport())
