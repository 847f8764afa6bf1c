"""Predictors as evaluators of NNI's experiments."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from nas_core.errors import ConfigError
from nas_core.files import real_path
from nas_core.predictor import AccuracyModel, expected_improvement
from nni_ext.compat import host_class, nni_module
from nni_ext.nas.readers import Read, opened, reader_for, reader_name

_FEATURE = "evaluating models of NNI with a predictor"
_Evaluator: Any = host_class("nni.nas.evaluator", "Evaluator", _FEATURE)


class PredictorEvaluator(_Evaluator):
    """Reports what a predictor says of each model; no model is built and nothing is trained.

    NNI's strategies maximise the metric, so the predictor is to be one of accuracy. In the sequential engine a model
    takes milliseconds. The training-service engine starts a process for each model; there the predictor has to be given
    by its path, and ``read`` has to be importable.

    Example:
        >>> evaluator = PredictorEvaluator("accuracy.safetensors")
        >>> NasExperiment(NasBench201(), evaluator, RegularizedEvolution(), config)

    A predictor that has a spread reports it too, as ``spread`` beside ``default``; ``prediction`` stands there where
    the metric is something else.

    Args:
        predictor: the path of its file, or the fitted predictor itself.
        best: the best value that was measured so far; given, the metric is the expected improvement over it, so that a
            strategy also looks where the predictor is unsure.
        reader: how graphs are made of samples, by ``nas_core``'s name of a reader; default: as the predictor was
            trained by ``nas-ext lab predictor train --reader``, else as for accuracy. A predictor of latency on
            NAS-Bench-201 wants ``nasbench201_unpruned``, since devices also compute what reaches no output.
        read: makes the graph of a sample, for model spaces of other classes than those of ``PredictorProfiler``.

    Raises:
        DataError: the file is missing or holds no predictor. ConfigError: the predictor was not fitted.
        ConfigError: ``best`` for a predictor without a spread. MissingHostError: NNI is absent.
    """

    def __init__(
        self,
        predictor: AccuracyModel | str | Path,
        *,
        read: Read | None = None,
        reader: str | None = None,
        best: float | None = None,
    ) -> None:
        self.predictor = opened(predictor)
        self.best = best
        if best is not None:
            self.predictor.require_spread()
        self.path = str(real_path(predictor)) if isinstance(predictor, str | Path) else None
        self.read, self.reader = read, reader

    def evaluate(self, model: Any) -> float:
        """The prediction for a frozen model, or its expected improvement, in the units of the predictor's targets; in a
        trial it is also reported, as intermediate and as final result.

        Args:
            model: what strategies and engines hold, with its sample; not the network built from it.

        Raises:
            SpaceError: a model of a space of another class, and no ``read``. ConfigError: it is not frozen, or the
                reader is not one of its space.
            GraphError: a label is missing, or the graph is not one the predictor was fitted for.
            ArchitectureError, UnknownChoiceError: a value that its space does not have.
        """
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
        """NNI's hook for evaluators to which it need not build the model."""
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
        more = {"reader": fields.get("reader"), "best": fields.get("best")}
        return cls(fields["predictor"], read=fields["read"], **more)
