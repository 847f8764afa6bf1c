"""``python -m timm_ext.launch PATH/train.py ..``: run a script of a timm checkout with the models of this package.

timm's trainer trains one random subnet of a supernet per forward pass (SPOS).
"""

from __future__ import annotations

import functools
import runpy
import sys
from pathlib import Path
from typing import Any

from nas_core.errors import DataError, NasExtError
from nas_core.files.reading import real_path


def main() -> int:
    if len(sys.argv) < 2 or sys.argv[1] in ("-h", "--help"):
        print("usage: python -m timm_ext.launch PATH/train.py [options of that script]")
        return 0 if len(sys.argv) > 1 else 2
    sys.argv = sys.argv[1:]
    try:
        path = Path(sys.argv[0])
        if not path.is_file():
            raise DataError(f"{path} does not exist; give train.py or validate.py of a timm checkout")
        sys.path.insert(0, str(real_path(path).parent))
        wrap_subnets()
        runpy.run_path(str(path), run_name="__main__")
    except NasExtError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


def wrap_subnets() -> None:
    """Register the models, and patch ``DistributedDataParallel`` for supernets and for training on CPUs."""
    # A subnet has no gradients for some parameters of the supernet. On a CPU, torch rejects timm's `device_ids`.
    from torch.nn.parallel import DistributedDataParallel

    from timm_ext.model import VisionModel

    original = DistributedDataParallel.__init__

    @functools.wraps(original)
    def init(self: Any, module: Any, device_ids: Any = None, *arguments: Any, **options: Any) -> None:
        if any(isinstance(submodule, VisionModel) and submodule.is_supernet for submodule in module.modules()):
            options["find_unused_parameters"] = True
        on_cpu = all(parameter.device.type == "cpu" for parameter in module.parameters())
        original(self, module, None if on_cpu else device_ids, *arguments, **options)

    DistributedDataParallel.__init__ = init  # type: ignore[method-assign]


if __name__ == "__main__":
    sys.exit(main())
