"""What can be chosen: choices, search spaces, architectures, and the registered spaces."""

from nas_core.space.architecture import Architecture, Gene, Option
from nas_core.space.choice import Choice
from nas_core.space.files import load_space, save_space, space_from_dict, space_to_dict
from nas_core.space.hat import hat_draw, read_hat_yaml, translation_space
from nas_core.space.registry import get_space, list_spaces, register_space
from nas_core.space.space import SearchSpace

__all__ = [
    "Architecture",
    "Choice",
    "Gene",
    "Option",
    "SearchSpace",
    "get_space",
    "hat_draw",
    "list_spaces",
    "load_space",
    "read_hat_yaml",
    "register_space",
    "save_space",
    "space_from_dict",
    "space_to_dict",
    "translation_space",
]
