"""Models of ``transformers`` whose layers differ in size.

``layer_sizes`` in ``config.json`` is a list with the settings of each layer that differ from those of the model.
"""

# nas-ext copies this file into folders, so it imports nothing of nas-ext.
import copy
import inspect
from operator import attrgetter
from typing import Any


def resize_layers(model: Any, layers: str) -> None:
    """Replace the layers of a model by new ones of the sizes in ``model.config.layer_sizes``.

    Args:
        layers: path of the list of layers in the base model, such as ``encoder.layer``.
    """
    config, stack = model.config, attrgetter(layers)(model.base_model)
    for index, sizes in enumerate(config.layer_sizes):
        layer_config, kind = copy.copy(config), type(stack[index])
        for name, value in sizes.items():
            setattr(layer_config, name, value)
        takes_index = "layer_idx" in inspect.signature(kind).parameters
        stack[index] = kind(layer_config, layer_idx=index) if takes_index else kind(layer_config)
        for module in stack[index].modules():
            if hasattr(module, "config"):
                module.config = config  # the model's own, which set_attn_implementation changes
