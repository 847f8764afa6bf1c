"""timm plug-in. Importing it registers its models, for ``timm.create_model("mformer_cifar10")``."""

import sys

from nas_core.optional import require
from nas_core.startup import wait_passively
from nas_core.torchvision_fix import repair

if "timm_ext.train" in sys.orig_argv:  # torch, which is imported next, reads the policy
    wait_passively()
repair()
require("timm", "image models and their training", "timm")

from timm_ext import models  # noqa: E402, F401  timm imports torchvision, which may have needed the repair
from timm_ext.checkpoint import load_model, write_subnet  # noqa: E402
from timm_ext.model import VisionModel  # noqa: E402
from timm_ext.trained.conversion import elastic  # noqa: E402

__all__ = ["VisionModel", "elastic", "load_model", "write_subnet"]
