"""Small real examples to start from, each a folder that ``nas-ext quickstart`` writes and that runs as it is."""

from nas_core.quickstart.kind import Quickstart
from nas_core.quickstart.registry import QUICKSTARTS

__all__ = ["QUICKSTARTS", "Quickstart"]
