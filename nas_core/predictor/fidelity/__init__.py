"""Learning from trainings of different length: many short ones and few long ones."""

from nas_core.predictor.fidelity.chain import Chain
from nas_core.predictor.fidelity.levels import Levels, facts_of, levels_of
from nas_core.predictor.fidelity.link import Link

__all__ = ["Chain", "Levels", "Link", "facts_of", "levels_of"]
