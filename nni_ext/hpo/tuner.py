"""The tuner that NNI's experiment YAMLs can choose: any search strategy of ``nas_core`` by its name."""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nas_core.errors import ArchitectureError, ConfigError, NasExtError, unknown_choice
from nas_core.search import STRATEGIES, Strategy
from nas_core.search.journal import plain_metrics
from nas_core.search.metrics import metric_named
from nas_core.search.registry import config_of, strategy_options
from nas_core.search.strategies.steady import SteadySearch
from nas_core.space import Architecture, SearchSpace, get_space
from nas_core.space.labels import parameters_of
from nni_ext.compat import host_class, nni_module
from nni_ext.graphs import architecture_of
from nni_ext.hpo.dispatcher import errors_told
from nni_ext.hpo.limits import LIMITS, expanded, make_constraints
from nni_ext.hpo.search_space import check_labels, space_from_nni
from nni_ext.objectives import NEGATED, further_objectives, with_negatives
from nni_ext.record import Record

_FEATURE = "searching with NNI's experiments"
_Tuner: Any = host_class("nni.tuner", "Tuner", _FEATURE)
_log = logging.getLogger("nni.nas_ext")  # below "nni", so that it stands in the experiment's dispatcher.log

MODES = ("minimize", "maximize")
_COMMON = (
    "strategy", "space", "metric", "objectives", "unit", "optimize_mode", "seed", "max_tries", "latency_model",
    "workload", *LIMITS
)  # fmt: skip


@dataclass
class _Silent:
    """A trial that ended without a result."""

    beside: set[int | None]
    """Those that ran at its end and still run."""
    since: int
    """Requests before it; it counts as failed two requests later, when a result that was under way has come."""


class SearchTuner(_Tuner):
    """A search strategy as a tuner: architectures for parameters, results for trials, and a record of what was told.

    ``classArgs`` in YAML, beside the options of the strategy, which are those of ``nas-ext search --help`` by the names
    of the fields of its configuration (``population: 30``):

    - ``strategy``: its name, as in ``nas-ext search --strategy``.
    - ``space``: a name of ``nas-ext lab space list`` or a YAML file. The experiment's search space has to be the one of
      ``nas-ext lab space export NAME --format nni``. Without it each entry of the search space is a gene of its own.
    - ``metric``: of the results that trials report (``default``), ``unit``: its unit, for reports (``bits per token``).
    - ``objectives``: of a strategy that weighs several metrics (``multi-objective``): a list of names in the results,
      ``metric`` first, with a minus in front where larger is better and the name does not tell; default: ``metric`` and
      what is limited.
    - ``optimize_mode``: ``minimize`` (default) or ``maximize``. NNI's page reads it too and maximises without it, so
      that it calls the worst loss the best trial: always give it.
    - NNI starts tuners in a folder of its own: files are named by whole paths, in which ``~`` and variables of the
      environment (``$PWD``: where ``nnictl`` was started) are filled in.
    - ``latency_model`` and ``max_latency_ms``, ``max_params_m``, ``max_flops_g``, ``max_memory_mb``,
      ``max_cache_mb``: hard limits; they need ``space``. ``workload``: settings by name, ``{target_length: 60, beam:
      4}``, at which memory and cache are counted.
    - ``seed``, ``max_tries``: see :class:`~nas_core.search.Strategy`.

    A trial that fails, reports nothing or no number counts as failed; one that was added by hand is told. With more
    than one trial at a time, workers that would wait for the end of a generation get spare architectures (see
    :class:`~nas_core.search.strategies.steady.SteadySearch`). Results are recorded beside the experiment's log: after
    ``nnictl resume`` the same search goes on, and ``nas-ext report`` reads the folder.

    Raises:
        ConfigError, UnknownChoiceError, SpaceError: arguments that are unknown or out of range.
    """

    def __init__(self, *, strategy: str = "", **class_args: Any) -> None:
        super().__init__()
        arguments = dict(class_args)
        self._lock = threading.RLock()
        self._search: SteadySearch | None = None
        self._record: Record | None = None
        self._parameters: dict[int, Architecture] = {}
        self._running: set[int] = set()
        self._recalled: set[Architecture] = set()
        self._workers, self._any_result = 0, False
        self._silent: dict[int, _Silent] = {}
        self._requests = 0
        common = {name: arguments.pop(name, None) for name in _COMMON}
        if strategy in ("", None):
            raise ConfigError(f"classArgs name no strategy; give 'strategy' one of {', '.join(STRATEGIES.names())}")
        self.kind = STRATEGIES.get(str(strategy))
        """The strategy's class."""
        options = [option.name for option in strategy_options(self.kind.name, _COMMON)]
        for given in arguments:
            if given not in options:
                raise unknown_choice(f"argument of strategy {strategy}", given, [*_COMMON, *options])
        self.config = config_of(self.kind.name, arguments)
        self.mode = common["optimize_mode"] or MODES[0]
        if self.mode not in MODES:
            raise unknown_choice("optimize_mode", self.mode, MODES)
        objectives = common["objectives"]
        first = objectives[0] if isinstance(objectives, list | tuple) and objectives else "default"
        self.metric = str(common["metric"] or first)
        _check_direction(self.metric, self.mode)
        self.unit = str(common["unit"] or "")
        self.minimized = self.metric if self.mode == "minimize" else f"{NEGATED}{self.metric}"
        """What the strategy minimises: the metric, or its negative under a name of its own."""
        self.seed = _whole("seed", common["seed"], 0)
        self.max_tries = _whole("max_tries", common["max_tries"], 20_000)
        name, model = (None if common[key] is None else expanded(common[key]) for key in ("space", "latency_model"))
        self.space: SearchSpace | None = None if name is None else get_space(name)
        limits = {name: common[name] for name in LIMITS if common[name] is not None}
        self.constraints = make_constraints(self.space, limits, model, common["workload"])
        limited = [constraint.name for constraint in self.constraints]
        further = further_objectives(self.kind, objectives, self.metric, limited)
        self.objectives = (self.minimized, *further)
        """What the strategy is given to minimise, of which most take the first alone."""

    # -- what NNI calls ----------------------------------------------------------------------------------------------

    @errors_told
    def update_search_space(self, search_space: Mapping[str, Any]) -> None:
        """The first call, and again after ``nnictl update searchspace``, which no search survives.

        Raises:
            SpaceError: it is not that of ``space``, or holds what is no choice. ConfigError: the search has begun.
            ConstraintError: nothing meets the limits.
        """
        with self._lock:
            if self.space is not None:
                check_labels(self.space, search_space)
            space = self.space or space_from_nni(search_space)
            if self._search is not None:
                if space != self._search.strategy.space:
                    raise ConfigError("the search space was changed during a search; start another experiment")
                return
            search = SteadySearch(self._made(space))
            search.strategy.start()
            self._record = Record.of_experiment(search.strategy, {self.metric: self.unit} if self.unit else {})
            self._search = search
            if self._record is not None:
                search.load(self._record.results())
                _log.info("results are recorded in %s, %d were there", self._record.folder, len(search.told))

    @errors_told
    def generate_parameters(self, parameter_id: int, **kwargs: Any) -> dict[str, Any]:
        """Parameters of the next trial, by label.

        Raises:
            nni.NoMoreTrialError: the search is over.
        """
        with self._lock:
            search = self._begun()
            self._requests += 1
            self._workers += not self._any_result  # NNI asks once for each worker before anything can have ended
            self._give_up_silent()
            self._recall()
            architecture = search.next()
            if architecture is None:
                raise nni_module("nni", _FEATURE).NoMoreTrialError("the search has ended")
            self._parameters[parameter_id] = architecture
            self._running.add(parameter_id)
            return parameters_of(search.strategy.space, architecture)

    @errors_told
    def receive_trial_result(self, parameter_id: int, parameters: Mapping[str, Any], value: Any, **kwargs: Any) -> None:
        with self._lock:
            architecture = self._parameters.pop(parameter_id, None)
            if architecture is None or kwargs.get("customized"):
                architecture = self._read(parameters)
            if architecture is not None:
                self._tell(architecture, value)

    @errors_told
    def trial_end(self, parameter_id: int, success: bool, **kwargs: Any) -> None:
        """A failed trial has no result; neither has one that ended well and never reported. Its result may still come,
        though, since NNI tells ends in another thread than results, and since local trials that start together may
        take each other's parameters, whose results NNI then books rightly and whose ends it does not."""
        with self._lock:
            self._running.discard(parameter_id)
            self._any_result = True
            if parameter_id in self._parameters:
                self._silent[parameter_id] = _Silent(set(self._running), self._requests if success else -2)
            self._give_up_silent(parameter_id)

    @errors_told
    def import_data(self, data: Sequence[Mapping[str, Any]]) -> None:
        """Results of earlier trials: of this search when it is resumed, or of another one over the same space."""
        with self._lock:
            search = self._begun()
            results = {}
            for entry in data:
                architecture = self._read(entry.get("parameter"))
                if architecture is not None and architecture not in search.told:
                    results[architecture] = self._metrics(architecture, entry.get("value"))
                    if self._record is not None:
                        self._record.add(architecture, results[architecture])
            search.load(results.items())
            self._any_result = self._any_result or self._requests > 0

    def save_checkpoint(self) -> None:
        """Nothing to do: each result is on the disk before it is used."""

    def load_checkpoint(self) -> None:
        """Nothing to do: the record is read when the search space is known."""

    # -- inside ------------------------------------------------------------------------------------------------------

    def _made(self, space: SearchSpace) -> Strategy:
        common = {"seed": self.seed, "max_tries": self.max_tries}
        made: Strategy = self.kind.made(space, self.constraints, self.config, self.objectives, **common)
        return made

    def _begun(self) -> SteadySearch:
        if self._search is None:
            raise ConfigError("the tuner has no search space yet; call update_search_space first")
        return self._search

    def _recall(self) -> None:
        """Hand out again, once, what has no result although all workers are free, or although the only one is: it was
        lost with an experiment that was killed, or is run twice, since NNI itself repeats what was running then. So a
        search one by one waits for what it has to know, and goes on as it would have."""
        if self._running and self._workers > 1:
            return
        for parameter_id, architecture in list(self._parameters.items()):
            if architecture not in self._recalled:
                del self._parameters[parameter_id]
                self._recalled.add(architecture)
                self._begun().recall(architecture)

    def _give_up_silent(self, ended: int | None = None) -> None:
        """Tell failures: of trials that ended without a result, once all that ran beside them have ended."""
        for parameter_id, silent in list(self._silent.items()):
            silent.beside.discard(ended)
            if parameter_id not in self._parameters:
                del self._silent[parameter_id]
            elif not silent.beside and self._requests >= silent.since + 2:
                del self._silent[parameter_id]
                self._tell(self._parameters.pop(parameter_id), None)

    def _tell(self, architecture: Architecture, value: Any) -> None:
        search = self._begun()
        self._any_result = True
        if architecture in search.told:
            return
        metrics = self._metrics(architecture, value)
        if self._record is not None:
            self._record.add(architecture, metrics)
        search.tell(architecture, metrics)

    def _metrics(self, architecture: Architecture, value: Any) -> dict[str, float | None]:
        """A trial's result, what was predicted where it says nothing, and the number to minimise."""
        row = self._begun().strategy.space.rows([architecture])
        metrics = {constraint.name: float(constraint.values(row)[0]) for constraint in self.constraints}
        if isinstance(value, Mapping):
            metrics.update(value)
        elif value is not None:  # a number alone, which is what the search goes by
            metrics.update({"default": value, self.metric: value})
        return with_negatives(plain_metrics(metrics), self.objectives)

    def _read(self, parameters: Any) -> Architecture | None:
        """The architecture of a trial's parameters; None, with a warning, if it is none of this search."""
        space = self._begun().strategy.space
        try:
            if not isinstance(parameters, Mapping):
                raise ArchitectureError(f"got parameters {parameters!r}; expected options by label")
            return space.validate(architecture_of(space, parameters))
        except NasExtError as error:
            _log.warning("a result is passed over: %s", error)
            return None


def _check_direction(metric: str, mode: str) -> None:
    """Check that a metric is sought in the direction in which it is better.

    Raises:
        ConfigError: its name says that the other direction is meant.
    """
    if metric.startswith(NEGATED):
        raise ConfigError(f"metric is {metric}; give it without the minus, and 'optimize_mode: maximize'")
    larger = metric_named(metric).larger_is_better
    if larger is not None and larger != (mode == "maximize"):
        raise ConfigError(
            f"optimize_mode is {mode}, but {metric} is better when it is {'larger' if larger else 'smaller'}; give"
            f" 'optimize_mode: {'maximize' if larger else 'minimize'}'"
        )


def _whole(name: str, value: Any, default: int) -> int:
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ConfigError(f"{name} is {value!r}; expected a whole number of at least 0")
    return value
