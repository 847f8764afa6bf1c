"""Search spaces, choices, architectures, and the registered spaces."""

from typing import TYPE_CHECKING

from nas_core.lazy_names import lazy_names

if TYPE_CHECKING:
    from nas_core.space.architecture import Architecture
    from nas_core.space.choice import Choice
    from nas_core.space.files import load_space, save_space
    from nas_core.space.hat import translation_space
    from nas_core.space.mformer import with_attention
    from nas_core.space.registry import get_space, list_spaces
    from nas_core.space.space import SearchSpace

__all__ = [
    "Architecture",
    "Choice",
    "SearchSpace",
    "get_space",
    "list_spaces",
    "load_space",
    "save_space",
    "translation_space",
    "with_attention",
]

__getattr__, __dir__ = lazy_names(__name__)
