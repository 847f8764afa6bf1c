"""Predictors as profilers of NNI."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from nas_core.predictor import AccuracyModel
from nas_core.predictor.targets import checked_levels
from nni_ext.compat import host_class
from nni_ext.graphs import Sample
from nni_ext.nas.readers import Read, opened, reader_for, reader_name

_Profiler: Any = host_class("nni.nas.profiler", "Profiler", "profiling model spaces of NNI with a predictor")


class PredictorProfiler(_Profiler):
    """What a predictor says of a sample (accuracy, latency), for filters and penalties of NNI.

    ``RangeProfilerFilter`` and ``SampleProfilerPenalty`` take it. ``ExpectationProfilerPenalty`` does not: it expects
    an ``ExpressionProfiler``, whose value NNI computes for distributions symbolically; a network has no such form.

    Example:
        >>> profiler = PredictorProfiler(NasBench201(), "accuracy.safetensors")
        >>> strategy = RandomOneShot(filter=RangeProfilerFilter(profiler, min=90.0))

    Args:
        model_space: a NasBench101 or NasBench201 of NNI's hub, or what ``as_model_space`` made.
        predictor: fitted, or the path of its file.
        reader: how graphs are made of samples, by ``nas_core``'s name of a reader; default: as the predictor was
            trained by ``nas-ext lab predictor train --reader``, else as for accuracy. A predictor of latency on
            NAS-Bench-201 wants ``nasbench201_unpruned``, since devices also compute what reaches no output.
        read: makes the graph of a sample, for model spaces of other classes.
        quantile: a probability; given, a sample's value is the one below which it lies with that probability: a filter
            with ``max=`` then keeps what is within a limit that surely (0.9), one with ``min=`` takes 0.1.

    Raises:
        DataError: the file is missing or holds no predictor. ConfigError: the predictor was not fitted.
        ConfigError: the reader is not one of the model space; a level of no quantile, or a predictor without a spread.
        SpaceError: a model space of another class, and no ``read``.
        MissingHostError: NNI is absent.
    """

    def __init__(
        self,
        model_space: Any,
        predictor: AccuracyModel | str | Path,
        *,
        read: Read | None = None,
        reader: str | None = None,
        quantile: float | None = None,
    ) -> None:
        super().__init__(model_space)
        if read is None:
            reader_for(model_space)  # a wrong space is told before a file is opened
        self.predictor, self.quantile = opened(predictor), quantile
        if quantile is not None:
            checked_levels([quantile])
            self.predictor.require_spread()
        self.read = reader_for(model_space, reader_name(self.predictor, reader)) if read is None else read

    def profile(self, sample: Sample) -> float:
        """The prediction for one sample, in the units of the predictor's targets.

        Raises:
            GraphError: a label is missing, or the graph is not one the predictor was fitted for.
            ArchitectureError, UnknownChoiceError: a value that its space does not have.
        """
        return self.profile_many([sample])[0]

    def profile_many(self, samples: Sequence[Sample]) -> list[float]:
        """The predictions for several samples at once, which is faster; raises what :meth:`profile` does."""
        graphs = [self.read(sample) for sample in samples]
        if self.quantile is None:
            return [float(value) for value in self.predictor.predict(graphs)]
        return [float(value) for value in self.predictor.predict_quantiles(graphs, [self.quantile])[0]]
