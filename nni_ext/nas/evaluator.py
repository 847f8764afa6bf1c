"""Predictors as evaluators of NNI's experiments."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from nas_core.errors import ConfigError
from nas_core.files.reading import real_path
from nas_core.predictor import AccuracyModel, expected_improvement
from nni_ext.compat import host_class, nni_module
from nni_ext.nas.readers import Read, open_predictor, reader_for, reader_name

_FEATURE = "evaluating models of NNI with a predictor"
_Evaluator: Any = host_class("nni.nas.evaluator", "Evaluator", _FEATURE)


class PredictorEvaluator(_Evaluator):
    """Evaluator that reports a predictor's value of each model, without building or training it.

    NNI's strategies maximise it. The training-service engine needs the path of the predictor and an importable
    ``read``. The report has the standard deviation as ``spread``, and the prediction as ``prediction`` if it is not the
    metric.

    Example:
        >>> evaluator = PredictorEvaluator("accuracy.safetensors")
        >>> NasExperiment(NasBench201(), evaluator, RegularizedEvolution(), config)

    Args:
        predictor: fitted predictor, or its file.
        best: best measured value; the metric is then the expected improvement over it.
        reader, read: see :class:`~nni_ext.PredictorProfiler`.

    Raises:
        DataError, ConfigError: an invalid predictor, or one without standard deviation for ``best``.
    """

    def __init__(
        self,
        predictor: AccuracyModel | str | Path,
        *,
        read: Read | None = None,
        reader: str | None = None,
        best: float | None = None,
    ) -> None:
        self.predictor = open_predictor(predictor)
        self.best = best
        if best is not None:
            self.predictor.require_std()
        self.path = str(real_path(predictor)) if isinstance(predictor, str | Path) else None
        self.read, self.reader = read, reader

    def evaluate(self, model: Any) -> float:
        """Return the prediction for a frozen model, or its expected improvement; a trial also reports it to NNI."""
        read = self.read or reader_for(model, reader_name(self.predictor, self.reader))
        sample = getattr(model, "sample", None)
        if sample is None:
            raise ConfigError("the model is not frozen; give what freeze(sample) of an executable model space returns")
        predicted, spread = self.predictor.predictions([read(sample)])
        metric = float(predicted[0])
        more = {} if spread is None else {"spread": float(spread[0])}
        if self.best is not None and spread is not None:
            more["prediction"], metric = metric, float(expected_improvement(predicted, spread, self.best)[0])
        reported = {"default": metric, **more} if more else metric
        nni = nni_module("nni", _FEATURE)
        if nni.get_current_parameter() is not None:
            nni.report_intermediate_result(reported)
            nni.report_final_result(reported)
        return metric

    def _execute(self, model: Any) -> float:
        return self.evaluate(model)

    def extra_repr(self) -> str:
        return repr(self.path or self.predictor)

    def _dump(self) -> dict[str, Any]:
        if self.path is None:
            raise ConfigError(
                "a predictor in memory cannot be sent to NNI's trials; save it and give its path, or use the sequential"
                " engine"
            )
        return {"predictor": self.path, "read": self.read, "reader": self.reader, "best": self.best}

    @classmethod
    def _load(cls, **fields: Any) -> PredictorEvaluator:
        return cls(**fields)
