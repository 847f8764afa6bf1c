"""The searches of ``nas_core`` as strategies of NNI's ``NasExperiment``: what all of them share."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from nas_core.errors import ArchitectureError, ConfigError, NasExtError
from nas_core.search import Constraint, Strategy
from nas_core.space import Architecture, SearchSpace
from nni_ext.compat import host_class, nni_module
from nni_ext.nas.engines import finished_trials, keep_listening, stopping
from nni_ext.nas.evaluated import Evaluated, Evaluations, reported_number
from nni_ext.nas.flat import flatten
from nni_ext.nas.profiler_limit import ProfilerLimit, as_limits, limit_constraint, validity_constraint
from nni_ext.nas.submitted import Submitted
from nni_ext.record import Record

_FEATURE = "searching model spaces of NNI"
_Strategy: Any = host_class("nni.nas.strategy", "Strategy", _FEATURE)
_log = logging.getLogger("nni.nas_ext")  # below "nni", so that it stands in the experiment's log

POLL_S = 1.0
"""While results are awaited, the engine is asked this often whether it has ended."""
MAX_REVIVALS = 100
"""So often an engine that no longer listens to NNI's manager is made to."""
LATE_RESULTS = 10
"""After an engine has ended, so many polls wait for results that are still on their way."""


class AskTellStrategy(_Strategy):
    """Drives an ask/tell strategy over any model space of NNI.

    A model is submitted whenever a worker is idle. Where the search has to know all results of a generation first,
    it waits for models to end. A model that fails, or reports no number, counts as failed and the search goes on
    (the sequential engine itself stops at the first failure unless its ``continue_on_failure`` is set).

    The state holds plain types only, so that ``NasExperiment.resume`` can read it; the resumed search goes on as it
    would have and evaluates nothing twice, except what was being evaluated. After a resume NNI's own list of models
    lacks the old ones; :attr:`archive` has all of them. A state that cannot be loaded stays as it is on the disk.
    NNI saves the state only when an experiment starts and when it is stopped; ``record`` keeps every result.

    Args:
        constraints: hard limits, ``{name: (profiler, limit)}`` or a list of :class:`ProfilerLimit`; a model over a
            limit is never evaluated. Any profiler of NNI does; those that are no ``ExpressionProfiler`` are asked for
            up to 1,024 samples at once.
        maximize: whether larger metrics are better, as NNI has it.
        seed: of the search.
        max_tries: cap of each rejection sampling, in candidates.
        record: a folder where each result is on the disk before it is used, with the front and the finalists so far;
            ``nas-ext report`` reads it. The same strategy with the same folder goes on where it was killed.

    Raises:
        ConfigError, ConstraintError: malformed constraints. MissingHostError: NNI is absent.
    """

    def __init__(
        self,
        *,
        constraints: Mapping[str, Any] | Sequence[ProfilerLimit] = (),
        maximize: bool = True,
        seed: int = 0,
        max_tries: int = 20_000,
        record: str | Path | None = None,
    ) -> None:
        super().__init__()
        self.limits = as_limits(constraints)
        self.maximize, self.seed, self.max_tries = maximize, seed, max_tries
        self.search: Strategy | None = None
        """The strategy of ``nas_core``, once a model space is known; touched by the thread that runs alone."""
        self._evaluations: Evaluations | None = None
        self._folder = None if record is None else Path(record)
        self._submitted = Submitted()
        self._begun = self._resumed = False
        self._revived = 0
        self._kept: Mapping[str, Any] | None = None

    def make(self, space: SearchSpace, constraints: Sequence[Constraint], **common: Any) -> Strategy:
        """The strategy that is driven; ``common`` holds ``seed``, ``metric`` and ``max_tries``."""
        raise NotImplementedError

    @property
    def archive(self) -> list[Evaluated]:
        """All models evaluated so far, those before a resume included, in the order of their results."""
        return self._evaluations.entries if self._evaluations else []

    def best(self) -> Evaluated | None:
        """The one with the best metric, the earliest among equals; None while there is none."""
        return self._evaluations.best() if self._evaluations else None

    # -- what NNI calls ----------------------------------------------------------------------------------------------

    def initialize(self, model_space: Any, engine: Any) -> Any:
        """Prepare the search over a model space of NNI.

        Raises:
            ConfigError: the strategy was used before; a profiler of another space. SpaceError: nothing to choose.
        """
        if self.search is not None:
            raise ConfigError(
                f"this {type(self).__name__} was used in an experiment before; make a new one for each (what it found"
                " stays in its archive)"
            )
        return super().initialize(model_space, engine)

    def _initialize(self, model_space: Any, engine: Any) -> Any:
        flat = flatten(model_space)
        costs = [limit_constraint(flat, model_space, limit) for limit in self.limits]
        constraints = [*([validity_constraint(flat, model_space)] if flat.checked else []), *costs]
        metric = "-metric" if self.maximize else "metric"
        self.search = self.make(flat.space, constraints, seed=self.seed, metric=metric, max_tries=self.max_tries)
        self._evaluations = Evaluations(self.search, flat, costs, self.maximize)
        self._submitted.listen(engine)
        return model_space

    def _cleanup(self) -> None:
        self._submitted.listen(self.engine, on=False)

    def _run(self) -> None:
        """Search until the strategy is done.

        Raises:
            ConstraintError: nothing meets the limits. ConfigError: the state of an earlier run could not be loaded, or
                the record is one of another search.
        """
        search, _ = self._parts()
        if self._kept is not None:
            raise ConfigError("the state of the earlier run could not be loaded; make a new strategy and experiment")
        self._begun = True
        try:
            search.start()
            self._go_on()
            while self.wait_for_resource():
                self._take()
                if asked := search.ask(1):
                    self._submit(asked[0])
                elif self._submitted:
                    self._take(POLL_S)
                else:
                    break
            self._wait_for_rest()
        finally:
            self._take()

    def wait_for_resource(self) -> bool:
        """Wait as NNI does, but wake as soon as a result comes, and never wait for an engine that is deaf."""
        while not self.engine.idle_worker_available():
            if not self.engine.budget_available():
                return False
            self._listen()
            self._take(POLL_S)
        self._listen()
        return bool(self.engine.budget_available())

    def _listen(self) -> None:
        self._revived += keep_listening(self.engine)
        if self._revived > MAX_REVIVALS:
            raise NasExtError(
                "NNI's engine lost its manager; see NNI's logs, and go on in a new experiment (record=..)"
            )

    # -- models and results ------------------------------------------------------------------------------------------

    def _submit(self, architecture: Architecture) -> None:
        _, evaluations = self._parts()
        try:
            model = self.model_space.freeze(evaluations.flat.sample(architecture))
        except nni_module("nni.mutable", _FEATURE).SampleValidationError as error:
            _log.warning("NNI refuses sample %s: %s", architecture.key, error)
            evaluations.tell(architecture, None)
            return
        self._submitted.add(architecture, model)
        self.engine.submit_models(model)

    def _take(self, timeout_s: float = 0.0) -> None:
        """Results that have come in; waits so long for the first."""
        _, evaluations = self._parts()
        for architecture, reported in self._submitted.results(timeout_s):
            if reported_number(reported) is None:
                _log.warning("model %s reported %r, no number: it failed", architecture.key, reported)
            evaluations.tell(architecture, reported)

    def _go_on(self) -> None:
        """Results of an earlier run that the state, if there is one, lacks: those of the record, and what a training
        service has finished since the state was saved."""
        search, evaluations = self._parts()
        if self._folder is not None:
            evaluations.keep_in(Record(self._folder, search))
        if self._resumed:
            known = {}
            for sample, metric in finished_trials(self.engine):
                with contextlib.suppress(ArchitectureError):  # one that was added by hand
                    known[evaluations.flat.architecture(sample)] = metric
            evaluations.replay(known)

    def _wait_for_rest(self) -> None:
        self._take()
        if self._submitted:
            self.engine.wait_models()
        for _ in range(LATE_RESULTS):
            if not self._submitted:
                return
            self._take(POLL_S)
        _log.warning("%d models gave no result before the engine ended", len(self._submitted))

    def _parts(self) -> tuple[Strategy, Evaluations]:
        if self.search is None or self._evaluations is None:
            raise ConfigError(f"this {type(self).__name__} has no model space yet; NasExperiment gives it one")
        return self.search, self._evaluations

    # -- state -------------------------------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """Plain types only. A state that could not be loaded comes back as it was given.

        Raises:
            ConfigError: there is none to save. NNI logs it, and the file on the disk stays.
        """
        if self._kept is not None:
            return dict(self._kept)
        _, evaluations = self._parts()
        if not (self._begun or self._resumed) and stopping():
            raise ConfigError("the search never began: there is no state to save, and an earlier one is kept")
        self._take()
        return evaluations.state()

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Go on from the state of an interrupted search.

        Raises:
            ConfigError: the state of another strategy, space or setting, or none at all.
        """
        _, evaluations = self._parts()
        try:
            evaluations.load(state_dict)
        except NasExtError:
            self._kept = state_dict
            raise
        self._resumed = True
