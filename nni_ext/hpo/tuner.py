"""Tuner for NNI experiments that runs a search strategy."""

from __future__ import annotations

import functools
import logging
import os
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from nas_core.checks import checked_value
from nas_core.errors import ConfigError, DataError, NasExtError, unknown_choice
from nas_core.search import STRATEGIES
from nas_core.search.constraints import Constraint
from nas_core.search.journal import plain_metrics
from nas_core.search.limits import cost_limits
from nas_core.search.metrics import metric_named
from nas_core.search.registry import config_of
from nas_core.search.strategies.steady import SteadySearch
from nas_core.space import Architecture, SearchSpace, get_space
from nas_core.space.labels import architecture_of, parameters_of
from nni_ext.compat import host_class, nni_module
from nni_ext.hpo.search_space import check_labels, space_from_nni
from nni_ext.objectives import NEGATED, further_objectives, with_negatives
from nni_ext.record import Record

_FEATURE = "searching with NNI's experiments"
_Tuner: Any = host_class("nni.tuner", "Tuner", _FEATURE)
_Validator: Any = host_class("nni.utils", "ClassArgsValidator", _FEATURE)
_log = logging.getLogger("nni.nas_ext")  # a child of "nni", whose log is the experiment's dispatcher.log
Method = TypeVar("Method", bound=Callable[..., Any])

MODES = ("minimize", "maximize")
LIMITS = ("max_latency_ms", "max_params_m", "max_flops_g", "max_memory_mb", "max_cache_mb")


def report_errors(method: Method) -> Method:
    """Decorate a method of a tuner so that its exceptions end the experiment; NNI 3.0 would leave it ``RUNNING``."""

    @functools.wraps(method)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        try:
            return method(*args, **kwargs)
        except Exception as error:
            dispatcher = _calling_dispatcher()
            if dispatcher is not None and not isinstance(error, nni_module("nni", _FEATURE).NoMoreTrialError):
                dispatcher.report_error(str(error))
            raise

    return wrapper  # type: ignore[return-value]


def _calling_dispatcher() -> Any:
    dispatcher = nni_module("nni.runtime.msg_dispatcher_base", _FEATURE).MsgDispatcherBase
    frame = sys._getframe(1)
    while frame is not None and not isinstance(frame.f_locals.get("self"), dispatcher):
        frame = frame.f_back  # type: ignore[assignment]
    return None if frame is None else frame.f_locals["self"]


@dataclass
class _TrialWithoutResult:
    """Trial that ended without a result."""

    concurrent: set[int | None]
    """Trials that were running when this trial ended, and still are."""
    requests: int
    """Number of requested trials when this trial ended; it counts as failed after two further requests."""


class SearchTuner(_Tuner):
    """NNI tuner that proposes trials by a search strategy.

    Results are also written to a folder ``nas-ext`` next to the experiment's log. ``nnictl resume`` continues from
    it, and ``nas-ext report`` reads it. NNI starts tuners in a folder of its own, so paths must be absolute; ``~`` and
    ``$PWD`` are expanded.

    ``classArgs`` are the strategy's settings, named as in ``nas-ext search --help`` (``population: 30``), and:

    - ``strategy``: as in ``nas-ext search --strategy``.
    - ``space``: name or YAML file of the search space from which ``nas-ext lab space export NAME --format nni`` wrote
      the experiment's search space; by default each entry of the experiment's search space is a gene.
    - ``metric``: name in the trials' results (default: ``default``); ``unit``: its unit in reports.
    - ``objectives``: metrics of a multi-objective strategy, as of :class:`nni_ext.SearchStrategy`.
    - ``optimize_mode``: ``minimize`` (default) or ``maximize``. Always set it, since NNI's web page maximises by
      default.
    - ``max_latency_ms`` with ``latency_model`` (a file of ``nas-ext latency fit``), ``max_params_m``, ``max_flops_g``,
      ``max_memory_mb``, ``max_cache_mb``: hard constraints; they need ``space``.
    - ``workload``: settings for ``max_memory_mb`` and ``max_cache_mb``, such as lengths and beam size.
    - ``seed``: random seed.
    """

    def __init__(
        self,
        *,
        strategy: str = "",
        space: str | None = None,
        metric: str | None = None,
        objectives: Sequence[str] | None = None,
        unit: str = "",
        optimize_mode: str = MODES[0],
        seed: int = 0,
        latency_model: str | None = None,
        workload: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> None:
        super().__init__()
        limits = {name: checked_value(options.pop(name), float, name) for name in LIMITS if name in options}
        if isinstance(objectives, str):
            raise ConfigError(f"objectives are {objectives!r}; expected a list, such as [{objectives}, latency_ms]")
        self.kind = STRATEGIES.get(strategy)
        self.config = config_of(self.kind.name, options)
        if optimize_mode not in MODES:
            raise unknown_choice("optimize_mode", optimize_mode, MODES)
        self.mode, self.unit = optimize_mode, unit
        self.metric = metric or (objectives[0] if objectives else "default")
        _check_direction(self.metric, self.mode)
        self.minimized = self.metric if self.mode == "minimize" else f"{NEGATED}{self.metric}"
        """Name of the minimised metric: ``metric``, or ``-metric`` for its negative."""
        self.seed = seed
        self.space = None if space is None else get_space(expand(space))
        model = None if latency_model is None else expand(latency_model)
        self.constraints = make_constraints(self.space, limits, model, workload)
        limited = [constraint.name for constraint in self.constraints]
        other_objectives = further_objectives(self.kind, objectives, self.metric, limited)
        self.objectives = (self.minimized, *other_objectives)
        """Names of minimised metrics; single-objective strategies use the first."""
        self._lock = threading.RLock()
        self._search: SteadySearch | None = None
        self._record: Record | None = None
        self._parameters: dict[int, Architecture] = {}
        self._running: set[int] = set()
        self._recalled: set[Architecture] = set()
        self._workers, self._any_result = 0, False
        self._without_result: dict[int, _TrialWithoutResult] = {}
        self._requests = 0

    # -- called by NNI -----------------------------------------------------------------------------------------------

    @report_errors
    def update_search_space(self, search_space: Mapping[str, Any]) -> None:
        """Start the search in NNI's search space; later calls must give the same search space.

        Raises:
            SpaceError: the search space differs from the argument ``space``, or an entry has an unsupported type.
            ConstraintError: no architecture meets the limits.
        """
        with self._lock:
            if self.space is not None:
                check_labels(self.space, search_space)
            space = self.space or space_from_nni(search_space)
            if self._search is not None:
                if space != self._search.strategy.space:
                    raise ConfigError("the search space was changed during a search; start a new experiment")
                return
            search = SteadySearch(
                self.kind.create(space, self.constraints, self.config, self.objectives, seed=self.seed)
            )
            search.strategy.start()
            self._record = Record.of_experiment(search.strategy, {self.metric: self.unit} if self.unit else {})
            self._search = search
            if self._record is not None:
                search.load(self._record.results())
                _log.info("read results of %d architectures from %s", len(search.evaluated), self._record.folder)

    @report_errors
    def generate_parameters(self, parameter_id: int, **kwargs: Any) -> dict[str, Any]:
        """Return the parameters (label -> value) of the next trial.

        Raises:
            nni.NoMoreTrialError: the search has ended.
        """
        with self._lock:
            search = self._require_search()
            self._requests += 1
            self._workers += not self._any_result  # NNI first asks once for each worker
            self._fail_without_result()
            self._recall()
            architecture = search.next()
            if architecture is None:
                raise nni_module("nni", _FEATURE).NoMoreTrialError("the search has ended")
            self._parameters[parameter_id] = architecture
            self._running.add(parameter_id)
            return parameters_of(search.strategy.space, architecture)

    @report_errors
    def receive_trial_result(self, parameter_id: int, parameters: Mapping[str, Any], value: Any, **kwargs: Any) -> None:
        with self._lock:
            architecture = self._parameters.pop(parameter_id, None)
            if architecture is None or kwargs.get("customized"):
                architecture = self._read(parameters)
            if architecture is not None:
                self._tell(architecture, value)

    @report_errors
    def trial_end(self, parameter_id: int, success: bool, **kwargs: Any) -> None:
        # The result may come later from another thread. NNI's local service may exchange the parameters of trials that
        # start together, so a trial without a result is failed only after the trials that ran with it have ended.
        with self._lock:
            self._running.discard(parameter_id)
            self._any_result = True
            if parameter_id in self._parameters:
                self._without_result[parameter_id] = _TrialWithoutResult(
                    set(self._running), self._requests if success else -2
                )
            self._fail_without_result(parameter_id)

    @report_errors
    def import_data(self, data: Sequence[Mapping[str, Any]]) -> None:
        """Add results of earlier trials in the same search space."""
        with self._lock:
            search = self._require_search()
            results = {}
            for entry in data:
                architecture = self._read(entry.get("parameter"))
                if architecture is not None and architecture not in search.evaluated:
                    results[architecture] = self._metrics(architecture, entry.get("value"))
                    if self._record is not None:
                        self._record.add(architecture, results[architecture])
            search.load(results.items())
            self._any_result = self._any_result or self._requests > 0

    def save_checkpoint(self) -> None:
        pass  # each result is written when it arrives

    def load_checkpoint(self) -> None:
        pass  # update_search_space reads the written results

    # -- inside ------------------------------------------------------------------------------------------------------

    def _require_search(self) -> SteadySearch:
        if self._search is None:
            raise ConfigError("the tuner has no search space; call update_search_space first")
        return self._search

    def _recall(self) -> None:
        """Propose architectures again whose trials were lost when the experiment was killed."""
        if self._running and self._workers > 1:
            return
        for parameter_id, architecture in list(self._parameters.items()):
            if architecture not in self._recalled:
                del self._parameters[parameter_id]
                self._recalled.add(architecture)
                self._require_search().recall(architecture)

    def _fail_without_result(self, ended: int | None = None) -> None:
        """Fail trials without a result once all concurrent trials have ended."""
        for parameter_id, entry in list(self._without_result.items()):
            entry.concurrent.discard(ended)
            if parameter_id not in self._parameters:
                del self._without_result[parameter_id]
            elif not entry.concurrent and self._requests >= entry.requests + 2:
                del self._without_result[parameter_id]
                self._tell(self._parameters.pop(parameter_id), None)

    def _tell(self, architecture: Architecture, value: Any) -> None:
        search = self._require_search()
        self._any_result = True
        if architecture in search.evaluated:
            return
        metrics = self._metrics(architecture, value)
        if self._record is not None:
            self._record.add(architecture, metrics)
        search.tell(architecture, metrics)

    def _metrics(self, architecture: Architecture, value: Any) -> dict[str, float | None]:
        row = self._require_search().strategy.space.rows([architecture])
        metrics = {constraint.name: float(constraint.values(row)[0]) for constraint in self.constraints}
        if isinstance(value, Mapping):
            metrics.update(value)
        elif value is not None:  # a number alone is the metric
            metrics.update({"default": value, self.metric: value})
        return with_negatives(plain_metrics(metrics), self.objectives)

    def _read(self, parameters: Any) -> Architecture | None:
        space = self._require_search().strategy.space
        try:
            return space.validate(architecture_of(space, parameters))
        except NasExtError as error:
            _log.warning("ignored a trial's result with invalid parameters: %s", error)
            return None


def expand(path: object) -> str:
    return os.path.expandvars(os.path.expanduser(str(path)))


def make_constraints(
    space: SearchSpace | None, limits: Mapping[str, Any], latency_model: str | None, workload: Any = None
) -> list[Constraint]:
    """Return hard constraints for limits such as ``{"max_params_m": 40}``.

    Args:
        latency_model: file of ``nas-ext latency fit``.
        workload: settings for ``max_memory_mb`` and ``max_cache_mb``.
    """
    if (latency_model is None) != ("max_latency_ms" not in limits):
        raise ConfigError(
            "max_latency_ms and latency_model need each other; give both or neither (latency_model is a file of"
            " 'nas-ext latency fit')"
        )
    if not limits:
        return []
    if space is None:
        raise ConfigError(
            f"{next(iter(limits))} needs the argument space, from which costs are computed; give the name or file of a"
            " search space"
        )
    costs = {name.removeprefix("max_"): limits.get(name) for name in LIMITS[1:]}
    # Formulas and the latency model need torch, which takes seconds to import; NNI gives a tuner ten seconds to start.
    constraints = cost_limits(space, costs, workload=workload)
    if latency_model is not None:
        if not Path(latency_model).is_file():
            raise DataError(
                f"latency_model {latency_model} does not exist in {Path.cwd()}, the folder in which NNI starts tuners;"
                " give an absolute path, or one that begins with $PWD"
            )
        model = functools.cache(functools.partial(_load, latency_model, space))
        constraints.insert(
            0, Constraint("latency_ms", limits["max_latency_ms"], lambda rows: model().predict_rows(rows))
        )
    return constraints


def _load(path: str, space: SearchSpace) -> Any:
    from nas_core.latency import load_latency_model

    return load_latency_model(path, "genes", space)


def _check_direction(metric: str, mode: str) -> None:
    if metric.startswith(NEGATED):
        raise ConfigError(f"metric is {metric}; give its name without the minus, and 'optimize_mode: maximize'")
    larger = metric_named(metric).larger_is_better
    if larger is not None and larger != (mode == "maximize"):
        raise ConfigError(
            f"optimize_mode is {mode}, but {'larger' if larger else 'smaller'} values of {metric} are better; give"
            f" 'optimize_mode: {'maximize' if larger else 'minimize'}'"
        )


class SearchTunerValidator(_Validator):
    """Validator that NNI calls with ``classArgs`` before it creates a :class:`SearchTuner`."""

    def validate_class_args(self, **class_args: Any) -> None:
        SearchTuner(**class_args)
