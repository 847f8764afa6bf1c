"""The pictures of the pages: one program each, drawn with the project's own computations where there is one to show.

``python -m tools.pictures`` draws all into ``docs/pictures``, ``python -m tools.pictures NAME ..`` some. A program is a
module of this folder with ``TITLE`` and ``draw()``, which gives a figure; ``NAMES`` lists them.
"""

NAMES = (
    "idea", "whole", "prefixes", "sandwich", "ranking", "conflict", "experts", "products", "cosine", "weights", "state",
    "crossover", "siblings", "feed_forward", "drift",
)  # fmt: skip

__all__ = ["NAMES"]
