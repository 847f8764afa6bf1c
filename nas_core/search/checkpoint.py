"""Search for subnets of a trained supernet; implements ``nas-ext search``."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nas_core.checks import Range, check_fields, checked_value
from nas_core.errors import ConfigError, unknown_choice
from nas_core.jobs import EXECUTORS, Failure, jobs_config
from nas_core.precision import PRECISIONS
from nas_core.search.calibration.model import calibrated_metrics, objective_of
from nas_core.search.engine import search
from nas_core.search.finalists import goals_of, measure_finalists, save_finalists
from nas_core.search.limits import MEMORY, cost_limits, costs_on_paper, latency_limit
from nas_core.search.registry import STRATEGIES, config_of, default_strategy, describe_budget
from nas_core.space import Architecture

if TYPE_CHECKING:
    from nas_core.latency import GeneLatencyModel
    from nas_core.search.calibration.model import Calibration
    from nas_core.search.constraints import Constraint
    from nas_core.search.engine import EvaluateMany, SearchResult
    from nas_core.search.strategies.base import Strategy
    from nas_core.supernet.host import Supernet

_log = logging.getLogger(__name__)

LIMITS = ("latency_ms", "params_m", "flops_g", *MEMORY)
"""Names of limits. Each latency limit is a separate search; the other limits hold in all searches."""


@dataclass(frozen=True, kw_only=True)
class SearchSettings:
    """Settings of :func:`search_checkpoint` and options of ``nas-ext search``."""

    checkpoint: Path
    """Checkpoint of a trained supernet."""
    out: Path
    """Run folder; a search interrupted in it is resumed."""
    latency_model: Path | None = None
    """File written by 'nas-ext latency fit'."""
    limit: Mapping[str, Any] = field(default_factory=dict)
    """Largest value allowed, by name: latency_ms (also as a percentage of the largest network's latency, such as 50%),
    params_m (millions), flops_g (billions), memory_mb (weights and activations), cache_mb (decoding cache), both in
    10^6 bytes; repeatable; each latency is a separate search.
    """
    workload: Mapping[str, Any] = field(default_factory=dict)
    """Setting for limits of memory_mb and cache_mb: source_length, target_length, beam, batch; repeatable; default: as
    in the latency model.
    """
    data: Path | None = None
    """Data folder; default: the supernet's training data."""
    valid_subset: str = "valid"
    """Split whose loss is minimised."""
    valid_samples: int | None = None
    """Number of sentences or images of the split to evaluate; default: all."""
    evaluations: int | None = None
    """Largest number of architectures to evaluate in each search, at least 10; default: as the strategy's options."""
    strategy: str | None = None
    """Search strategy, from the list above. The default is ranknas; with a latency model and no latency limit,
    hypervolume. For more than 500 evaluations, or with jobs, it is evolution or multi-objective."""
    set: Mapping[str, Any] = field(default_factory=dict)
    """Option of the strategy, from the lists above; repeatable."""
    seed: int = 0
    """Random seed of the search."""
    finalists: int = 8
    """Number of architectures chosen at the end."""
    calibration: Path | None = None
    """File written by 'nas-ext lab calibrate'; its estimate of the quality after training from scratch is optimised."""
    further_supernet: tuple[Path, ...] = ()
    """Second or later supernet of the calibration; repeatable."""
    measure: bool = True
    """Measure the latency of the best architectures on this machine."""
    device: str = "cpu"
    """Device of the evaluations: cpu, cuda, cuda:1; cuda:0,cuda:1 starts one process each."""
    precision: str = field(default=PRECISIONS[0], metadata={"choices": PRECISIONS})
    """Precision of the evaluations."""
    executor: str = field(default=EXECUTORS[0], metadata={"choices": EXECUTORS})
    """local: evaluate in this process; submitit: evaluate in jobs."""
    job: Mapping[str, Any] = field(default_factory=dict)
    """Setting of submitit's jobs, from the list above; repeatable."""

    def __post_init__(self) -> None:
        positive = Range(1)
        check_fields(self, ranges={"seed": Range(0), "finalists": positive})
        if self.valid_samples is not None:
            checked_value(self.valid_samples, int, "valid_samples", positive)
        if self.evaluations is not None:
            checked_value(self.evaluations, int, "evaluations", Range(10))
        object.__setattr__(self, "limit", {name: _limit(name, value) for name, value in self.limit.items()})
        if "latency_ms" in self.limit and self.latency_model is None:
            raise ConfigError(
                "limit latency_ms needs a latency model; create one with 'nas-ext latency collect' and 'nas-ext latency"
                " fit'"
            )
        if self.further_supernet and not self.calibration:
            raise ConfigError("further_supernet needs calibration; give a file written by 'nas-ext lab calibrate'")
        if self.valid_subset.startswith("test"):
            raise ConfigError(
                f"valid_subset is {self.valid_subset}; a search must not use test data, give a validation split such as"
                " valid"
            )
        if self.workload and not any(name in self.limit for name in MEMORY):
            raise ConfigError(f"workload has no effect without a limit of {' or '.join(MEMORY)}; add one, or omit it")

    @property
    def data_options(self) -> dict[str, Any]:
        """Data options for :func:`nas_core.supernet.open_supernet`."""
        from nas_core.search.calibration.files import evaluation_settings

        return evaluation_settings(self.data, self.valid_subset, self.valid_samples)


def _limit(name: str, value: Any) -> tuple[float | str, ...]:
    if name not in LIMITS:
        raise unknown_choice("limit", name, LIMITS)
    values = value if isinstance(value, list | tuple) else [value]
    if len(values) != 1 and name != "latency_ms":
        raise ConfigError(f"limit {name} is {list(values)}; expected one number; only latency limits can be several")
    limits: list[float | str] = []
    for item in values:
        percentage = name == "latency_ms" and isinstance(item, str) and item.endswith("%")
        number = item.removesuffix("%") if percentage else item
        with suppress(ValueError):
            number = float(number) if isinstance(number, str) else number
        allowed = Range(0, 100 if percentage else math.inf, (0,))
        number = float(checked_value(number, float, f"limit {name}" + " in %" * percentage, allowed))
        limits.append(item if percentage else number)
    return tuple(limits)


class CheckpointEvaluation:
    """Metrics of a supernet's architectures: evaluated, computed, and predicted by a latency model.

    Args:
        calibration: adds its estimate of the quality after training from scratch.
        further: the calibration's other supernets.
    """

    def __init__(
        self,
        supernet: Supernet,
        latency: GeneLatencyModel | None = None,
        calibration: Calibration | None = None,
        further: Sequence[Supernet] = (),
    ) -> None:
        self.supernet, self.latency, self.calibration, self.further = supernet, latency, calibration, further
        self.costs = costs_on_paper(supernet.space)

    def __call__(
        self, architecture: Architecture, report: Callable[[float, Mapping[str, float]], None] | None = None
    ) -> dict[str, float]:
        """Return all metrics; ``report`` receives the evaluated fraction of the data and the metrics so far."""
        evaluated = self.supernet.evaluate(architecture, *([report] if report else []))
        return self.calibrated(architecture, {**self.on_paper(architecture), **evaluated})

    def on_paper(self, architecture: Architecture) -> dict[str, float]:
        """Return the metrics that need no evaluation: parameters, FLOPs and predicted latency."""
        metrics = {name: cost(architecture) for name, cost in self.costs.items()}
        if self.latency is not None:
            metrics["latency_ms"] = float(self.latency.predict(architecture)[0])
        return metrics

    def calibrated(self, architecture: Architecture, metrics: Mapping[str, Any]) -> dict[str, Any]:
        if self.calibration is None:
            return dict(metrics)
        others = [supernet.evaluate(architecture) for supernet in self.further]
        return {**metrics, **calibrated_metrics(self.calibration, architecture, [metrics, *others])}

    def calibrated_many(self, evaluate_many: EvaluateMany) -> EvaluateMany:
        """Return a function like ``evaluate_many`` that adds the calibration's estimates."""

        def many(architectures: Sequence[Architecture]) -> Iterator[Mapping[str, Any] | Failure]:
            for architecture, outcome in zip(architectures, evaluate_many(architectures), strict=True):
                yield outcome if isinstance(outcome, Failure) else self.calibrated(architecture, outcome)

        return many


def search_checkpoint(settings: SearchSettings, log: Callable[[str], None] = _log.info) -> SearchResult:
    """Search for subnets of a trained supernet, and measure the best ones.

    The run folder is that of :func:`nas_core.search.search`. The same settings resume an interrupted search.

    Raises:
        NasExtError: settings contradict each other, no architecture meets the limits, or evaluations keep failing.
    """
    return _CheckpointSearch(settings, log).run()


class _CheckpointSearch:
    def __init__(self, settings: SearchSettings, log: Callable[[str], None]) -> None:
        from nas_core.device import usable_devices
        from nas_core.files.reading import file_digest
        from nas_core.latency import load_latency_model
        from nas_core.precision import check_precision
        from nas_core.supernet.host import open_supernet

        self.settings, self.log = settings, log
        self.jobs = jobs_config(settings.executor, settings.device, settings.job)
        self.devices = [settings.device] if self.jobs else usable_devices(settings.device)
        self.here = self.jobs is None and len(self.devices) == 1
        if self.here:
            check_precision(settings.precision, settings.device)
        model = settings.latency_model
        front = model is not None and "latency_ms" not in settings.limit
        workers = self.jobs.jobs * self.jobs.per_job if self.jobs else len(self.devices)
        self.strategy = settings.strategy or default_strategy(settings.evaluations, front, workers)
        self.config = config_of(self.strategy, settings.set, settings.evaluations)
        self.compared: dict[str, Any] = {
            "checkpoint_sha256": file_digest(settings.checkpoint),
            "latency_model_sha256": file_digest(model) if model else None,
            **settings.data_options,
            "precision": settings.precision,
            **({"calibration_sha256": file_digest(settings.calibration)} if settings.calibration else {}),
        }
        self.opened = settings.data_options | (
            {} if settings.precision == "fp32" else {"precision": settings.precision}
        )
        # with executors, this process needs only the space, and may lack the device
        options = {**self.opened, "device": settings.device} if self.here else settings.data_options | {"device": "cpu"}
        supernet = open_supernet(settings.checkpoint, **options)
        calibration, further = self._calibration(supernet, options) if settings.calibration else (None, [])
        latency = load_latency_model(model, "genes", supernet.space) if model else None
        self.evaluation = CheckpointEvaluation(supernet, latency, calibration, further)
        self.space = supernet.space
        self.limits, self.strategies = self._strategies()
        self.objectives = self._objectives()

    def run(self) -> SearchResult:
        from nas_core.search.remeasure import remeasure

        settings, evaluation = self.settings, self.evaluation
        for strategy in self.strategies.values():
            strategy.start()  # raises the error of an infeasible limit
        executor, context = self._executor()
        budget = describe_budget(list(self.strategies.values()))
        self.log(f"strategy {self.strategy}: {budget}")
        if (model := evaluation.latency) is not None:
            self.log(f"latencies are predicted for {model.machine}")
        evaluate_many = executor and evaluation.calibrated_many(executor)
        with context:
            result = search(
                self.strategies,
                None if executor else evaluation,
                settings.out,
                evaluate_many=evaluate_many,
                batch_size=executor.batch_size if executor else 1,
                objectives=self.objectives,
                finalists=settings.finalists,
                settings=self.compared,
                notes=self._notes(),
            )
        if model is not None and settings.measure:
            task = evaluation.supernet.task
            measured = measure_finalists(
                result.finalists,
                result.evaluated,
                goals_of(self.strategies),
                lambda architectures: remeasure(architectures, model, task),
            )
            save_finalists(settings.out, measured)
        return result

    def _calibration(self, supernet: Supernet, options: Mapping[str, Any]) -> tuple[Calibration, list[Supernet]]:
        from nas_core.search.calibration.files import check_provenance, load_calibration
        from nas_core.supernet.host import open_supernet

        path, further = self.settings.calibration, self.settings.further_supernet
        assert path is not None
        calibration = load_calibration(path, supernet.space)
        check_provenance(calibration, path, [self.settings.checkpoint, *further], options)
        if further and not self.here:
            raise ConfigError("further_supernet needs evaluation in this process; give executor local and one device")
        return calibration, [open_supernet(path, **options) for path in further]

    def _strategies(self) -> tuple[list[Constraint], dict[str, Strategy]]:
        settings, model = self.settings, self.evaluation.latency
        workload = self._workload()
        self.compared |= {"workload": workload} if workload else {}
        limits = {name: settings.limit.get(name, (None,))[0] for name in LIMITS if name != "latency_ms"}
        shared = cost_limits(self.space, limits, workload=workload)
        latencies = [latency_limit(model, ms) for ms in self._limits_ms(model)] if model else []
        calibration = self.evaluation.calibration
        quality = objective_of(calibration) if calibration else "loss"
        strategy_class = STRATEGIES.get(self.strategy)
        objectives = [quality, *(["latency_ms"] if model else self.costs)][: strategy_class.max_objectives]
        if strategy_class.multi_objective and len(objectives) < 2:
            raise ConfigError(
                f"strategy {self.strategy} needs a second metric besides {quality}, but parameters and FLOPs cannot"
                f" be computed for search space {self.space.name!r}; give a latency model"
            )
        strategies: dict[str, Strategy] = {}
        for constraints in [[latency, *shared] for latency in latencies] or [shared]:
            name = " ".join(constraint.label for constraint in constraints) or "unlimited"
            strategies[name] = strategy_class.create(
                self.space, constraints, self.config, objectives=objectives, seed=settings.seed
            )
        return shared, strategies

    @property
    def costs(self) -> list[str]:
        return list(self.evaluation.costs)

    def _objectives(self) -> list[str]:
        last = list(self.strategies.values())[-1]
        latency = ["latency_ms"] if self.evaluation.latency else []
        names = [*last.objectives, *latency, *(constraint.name for constraint in self.limits)]
        return list(dict.fromkeys(names if len(names) > 1 else [*names, *self.costs]))

    def _limits_ms(self, model: GeneLatencyModel) -> list[float]:
        limits = []
        for limit in self.settings.limit.get("latency_ms", ()):
            if isinstance(limit, str):
                largest_ms = float(model.predict([self.space.largest()])[0])
                limits.append(math.ceil(float(limit.removesuffix("%")) * largest_ms * 100) / 1e4)
                self.log(f"limit {limit} is {limits[-1]:.4g} ms; the largest network takes {largest_ms:.4g} ms")
            else:
                limits.append(limit)
        return list(dict.fromkeys(limits))

    def _workload(self) -> dict[str, Any] | None:
        # for memory limits, from the settings, the supernet's task or the latency model, in this priority
        from nas_core.models.kind import kind_of, workload_of

        if not any(name in self.settings.limit for name in MEMORY):
            return None
        kind, model = kind_of(self.space), self.evaluation.latency
        measured = workload_of((model.info.get("settings") or {}).get("workload") or {}) if model else None
        defaults = {**(asdict(measured[1]) if measured else {}), **kind.task_settings(self.evaluation.supernet.task)}
        workload = {**defaults, **self.settings.workload}
        config = asdict(kind.config(workload))
        return {name: config[name] for name in workload}

    def _executor(self) -> tuple[Any, AbstractContextManager[Any]]:
        from nas_core.search.executor import DeviceExecutor, SubmititExecutor

        settings, on_paper = self.settings, self.evaluation.on_paper
        if self.jobs:
            options = {**self.opened, "device": settings.device}
            jobs = SubmititExecutor(settings.checkpoint, options, self.jobs, settings.out / "jobs", on_paper)
            return jobs, nullcontext()
        if not self.here:
            devices = DeviceExecutor(settings.checkpoint, settings.device, self.opened, on_paper)
            return devices, devices
        return None, nullcontext()

    def _notes(self) -> dict[str, Any]:
        from nas_core.files.reading import real_path
        from nas_core.latency.machine import describe_machine

        settings = self.settings
        cuda = self.here and self.devices[0].startswith("cuda")  # to ask several would take memory of each
        name = {"device_name": str(describe_machine(self.devices[0], 1)["device_name"])} if cuda else {}
        return {
            "checkpoint": str(real_path(settings.checkpoint)),
            "latency_model": str(real_path(settings.latency_model)) if settings.latency_model else None,
            "device": settings.device,
            **name,
            "units": dict(self.evaluation.supernet.units),
        }
