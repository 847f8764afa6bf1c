"""A check of ``classArgs`` for those parts of NNI that ask for one before a tuner is made."""

from __future__ import annotations

from typing import Any

from nni_ext.compat import host_class
from nni_ext.hpo.tuner import SearchTuner

_Validator: Any = host_class("nni.utils", "ClassArgsValidator", "checking the arguments of NNI's tuners")


class SearchTunerValidator(_Validator):
    """A tuner's arguments are good if the tuner takes them."""

    def validate_class_args(self, **class_args: Any) -> None:
        """Check the arguments.

        Raises:
            NasExtError: what is wrong, in one line.
        """
        SearchTuner(**class_args)
