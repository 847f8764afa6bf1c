"""Checks of ``classArgs`` for those parts of NNI that ask for them before a tuner is made."""

from __future__ import annotations

from typing import Any, ClassVar

from nni_ext.compat import host_class
from nni_ext.hpo.tuner import SearchTuner
from nni_ext.hpo.tuners import HATEvolutionTuner, RandomSearchTuner, RankNASTuner

__all__ = ["HATEvolutionValidator", "RandomSearchValidator", "RankNASValidator"]

_Validator: Any = host_class("nni.utils", "ClassArgsValidator", "checking the arguments of NNI's tuners")


class _TunerValidator(_Validator):
    """A tuner's arguments are good if the tuner takes them."""

    tuner: ClassVar[type[SearchTuner]]

    def validate_class_args(self, **class_args: Any) -> None:
        """Raises:
        NasExtError: what is wrong, in one line.
        """
        self.tuner(**class_args)


class HATEvolutionValidator(_TunerValidator):
    tuner = HATEvolutionTuner


class RankNASValidator(_TunerValidator):
    tuner = RankNASTuner


class RandomSearchValidator(_TunerValidator):
    tuner = RandomSearchTuner
