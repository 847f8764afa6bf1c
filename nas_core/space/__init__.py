"""Search spaces, choices, architectures, and the registered spaces."""

from nas_core.space.architecture import Architecture, Gene, Option
from nas_core.space.bert import bert_space
from nas_core.space.choice import Choice
from nas_core.space.files import load_space, save_space, space_from_dict, space_to_dict
from nas_core.space.hat import hat_draw, hat_extremes, read_hat_yaml, translation_space
from nas_core.space.image import image_architecture, image_space, list_image_architectures, static_image_space
from nas_core.space.language import language_space
from nas_core.space.masked_lm import masked_lm_space
from nas_core.space.mformer import found_translation, with_attention
from nas_core.space.registry import get_space, list_spaces, register_space
from nas_core.space.space import SearchSpace

__all__ = [
    "Architecture",
    "Choice",
    "Gene",
    "Option",
    "SearchSpace",
    "bert_space",
    "found_translation",
    "get_space",
    "hat_draw",
    "hat_extremes",
    "image_architecture",
    "image_space",
    "language_space",
    "list_image_architectures",
    "list_spaces",
    "load_space",
    "masked_lm_space",
    "read_hat_yaml",
    "register_space",
    "save_space",
    "space_from_dict",
    "space_to_dict",
    "static_image_space",
    "translation_space",
    "with_attention",
]
