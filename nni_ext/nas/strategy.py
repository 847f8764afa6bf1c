"""Search strategies for NNI's ``NasExperiment``."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from nas_core.errors import ConfigError, NasExtError
from nas_core.predictor import AccuracyModel
from nas_core.search import STRATEGIES, Strategy
from nas_core.search.registry import config_of, prior_options
from nas_core.search.strategies.ranknas import Prior
from nas_core.space import Architecture
from nni_ext.compat import host_class
from nni_ext.nas.engines import SubmittedModels, keep_listening
from nni_ext.nas.evaluations import EvaluatedModel, Evaluations, reported_number
from nni_ext.nas.limits import limit_constraint, validity_constraint
from nni_ext.nas.predictors import open_predictor, reader_for, reader_name
from nni_ext.nas.spaces import flatten
from nni_ext.objectives import further_objectives
from nni_ext.record import Record

_FEATURE = "searching model spaces of NNI"
_Strategy: Any = host_class("nni.nas.strategy", "Strategy", _FEATURE)
_log = logging.getLogger("nni.nas_ext")  # a child of "nni", whose log is the experiment's

POLL_S = 1.0
"""Seconds between checks whether the engine has ended."""
MAX_REVIVALS = 100
"""Largest number of restarts of an engine's listening thread."""
LATE_RESULTS = 10
"""Number of polls for late results after the engine has ended."""


class SearchStrategy(_Strategy):
    """NNI strategy that proposes models by a search strategy of this project, in any model space.

    A model that fails or reports no number counts as failed; with NNI's sequential engine, set
    ``continue_on_failure``. ``NasExperiment.resume`` continues a search. NNI saves its state only at the start and end
    of an experiment; set ``record`` to keep every result.

    Args:
        strategy: as in ``nas-ext search --strategy``.
        constraints: hard constraints, ``{name: (profiler, limit)}``.
        objectives: metrics of a multi-objective strategy, ``default`` first; start the name of a larger-is-better
            metric with a minus. Default: ``default`` and the constrained costs.
        maximize: larger values of the metric ``default`` are better.
        prior: predictor, or its file, whose predictions guide the search, such as ``PriorPredictor()``, which needs no
            training; for ``ranknas``, in model spaces that :class:`PredictorProfiler` supports.
        record: folder for results, read by ``nas-ext report``; a killed search continues from it.
        options: settings of the strategy, named as in ``nas-ext search --help``.

    Example:
        >>> flops = FlopsProfiler(space, torch.randn(1, 3, 224, 224))
        >>> strategy = SearchStrategy("evolution", constraints={"flops": (flops, 1.5e9)}, seed=1)
        >>> NasExperiment(space, evaluator, strategy, config).run()
        >>> strategy.best().sample
    """

    def __init__(
        self,
        strategy: str,
        *,
        constraints: Mapping[str, tuple[Any, float]] | None = None,
        objectives: Sequence[str] | None = None,
        maximize: bool = True,
        seed: int = 0,
        prior: AccuracyModel | str | Path | None = None,
        record: str | Path | None = None,
        **options: Any,
    ) -> None:
        self.kind = STRATEGIES.get(str(strategy))
        self.config = config_of(self.kind.name, options)
        prior_options(self.kind, prior)
        super().__init__()
        self.limits = dict(constraints or {})
        self.further_objectives = further_objectives(self.kind, objectives, "default", list(self.limits))
        self.maximize, self.seed, self._prior = maximize, seed, prior
        self.search: Strategy | None = None
        """Search strategy, set by :meth:`initialize`."""
        self._evaluations: Evaluations | None = None
        self._folder = None if record is None else Path(record)
        self._submitted = SubmittedModels()
        self._revived = 0
        self._rejected: Mapping[str, Any] | None = None

    @property
    def archive(self) -> list[EvaluatedModel]:
        """All evaluated models, oldest first, including those before a resume."""
        return self._evaluations.entries if self._evaluations else []

    def best(self) -> EvaluatedModel | None:
        """Return the model with the best metric; None if no evaluation succeeded."""
        return self._evaluations.best() if self._evaluations else None

    # -- called by NNI -----------------------------------------------------------------------------------------------

    def _initialize(self, model_space: Any, engine: Any) -> Any:
        if self.search is not None:
            raise ConfigError(
                f"the {type(self).__name__} was already used in an experiment; create a new one for each experiment"
            )
        flat = flatten(model_space)
        costs = [limit_constraint(flat, model_space, name, *pair) for name, pair in self.limits.items()]
        constraints = [*([validity_constraint(flat, model_space)] if flat.checked else []), *costs]
        objectives = ["-metric" if self.maximize else "metric", *self.further_objectives]
        prior = {} if self._prior is None else {"prior": _scores(model_space, flat, self._prior)}
        self.search = self.kind.create(flat.space, constraints, self.config, objectives, seed=self.seed, **prior)
        self._evaluations = Evaluations(self.search, flat, costs, self.maximize)
        self._submitted.listen(engine)
        return model_space

    def _cleanup(self) -> None:
        self._submitted.listen(self.engine, start=False)

    def _run(self) -> None:
        search, evaluations = self._require_initialized()
        if self._rejected is not None:
            raise ConfigError(
                "the saved state of the earlier run could not be loaded; create a new strategy and experiment"
            )
        try:
            search.start()
            if self._folder is not None:
                evaluations.record_in(Record(self._folder, search))
            while self.wait_for_resource():
                self._take_results()
                if architectures := search.ask(1):
                    self._submit(architectures[0])
                elif self._submitted:
                    self._take_results(POLL_S)
                else:
                    break
            self._wait_for_submitted()
        finally:
            self._take_results()

    def wait_for_resource(self) -> bool:
        """Wait for an idle worker; return False if the engine's budget is exhausted."""
        while not self.engine.idle_worker_available():
            if not self.engine.budget_available():
                return False
            self._listen()
            self._take_results(POLL_S)
        self._listen()
        return bool(self.engine.budget_available())

    def _listen(self) -> None:
        self._revived += keep_listening(self.engine)
        if self._revived > MAX_REVIVALS:
            raise NasExtError(
                "NNI's engine lost its connection to NNI's manager; see NNI's logs, and continue in a new experiment"
                " with the same record="
            )

    # -- models and results ------------------------------------------------------------------------------------------

    def _submit(self, architecture: Architecture) -> None:
        _, evaluations = self._require_initialized()
        model = self.model_space.freeze(evaluations.flat.sample(architecture))
        self._submitted.add(architecture, model)
        self.engine.submit_models(model)

    def _take_results(self, timeout_s: float = 0.0) -> None:
        _, evaluations = self._require_initialized()
        for architecture, reported in self._submitted.results(timeout_s):
            if reported_number(reported) is None:
                _log.warning("model %s counts as failed: it reported %r, not a number", architecture.key, reported)
            evaluations.tell(architecture, reported)

    def _wait_for_submitted(self) -> None:
        self._take_results()
        if self._submitted:
            self.engine.wait_models()
        for _ in range(LATE_RESULTS):
            if not self._submitted:
                return
            self._take_results(POLL_S)
        _log.warning("the engine ended before %d models reported a result", len(self._submitted))

    def _require_initialized(self) -> tuple[Strategy, Evaluations]:
        assert self.search is not None and self._evaluations is not None, "NasExperiment gives a model space first"
        return self.search, self._evaluations

    # -- state -------------------------------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """Return the state as plain data."""
        if self._rejected is not None:
            return dict(self._rejected)
        _, evaluations = self._require_initialized()
        self._take_results()
        return evaluations.state()

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Continue from the state of an interrupted search.

        Raises:
            ConfigError: the state is invalid, or belongs to another strategy, space or setting.
        """
        _, evaluations = self._require_initialized()
        try:
            evaluations.load(state_dict)
        except NasExtError:
            self._rejected = state_dict
            raise


def _scores(model_space: Any, flat: Any, prior: AccuracyModel | str | Path) -> Prior:
    predictor = open_predictor(prior)
    read = reader_for(model_space, reader_name(predictor, None))
    return lambda architectures: predictor.predict([read(flat.sample(a)) for a in architectures]).tolist()
