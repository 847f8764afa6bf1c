r"""Compare NN-Former with NASLib's predictors in NASLib's evaluator.

Example, with a checkout of NASLib on PYTHONPATH:

    python -m naslib_ext.benchmark --space nasbench201 --predictors nnformer xgb lgb gcn \
        --train-size 156 --test-size 200 --data nasbench201.npz --set epochs=300 --out result.json
"""

from __future__ import annotations

import argparse
import logging
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from nas_core.errors import ConfigError, NasExtError
from nas_core.files.writing import write_json
from nas_core.latency.machine import describe_machine
from nas_core.options import parsed_settings
from nas_core.predictor.recipes import recipe_types
from naslib_ext.evaluation import OURS, evaluate, make_predictor
from naslib_ext.spaces import SPACES, make_space, nasbench201_table, pickled_table

OWN_SETTINGS = {"recipe": str, "seed": int, "device": str}
"""Settings of NN-Former that are not part of a recipe, with their types."""
COLUMNS = ("kendalltau", "spearman", "mae", "fit_s", "query_ms", "one_query_ms")

_log = logging.getLogger(__name__)


def main(argv: list[str] | None = None) -> int:
    arguments = parser().parse_args(argv)
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    logging.getLogger("naslib").setLevel(logging.WARNING)  # it logs all targets and predictions
    try:
        result = run(arguments)
        print(table(result))
        if arguments.out:
            write_json(arguments.out, result)
    except NasExtError as error:
        print(f"nas-ext: error: {error}", file=sys.stderr)
        return 2
    return 0


def run(arguments: argparse.Namespace) -> dict[str, Any]:
    """Compare the predictors in ``arguments``; return the content of the result file."""
    settings = parsed_settings(arguments.set, {**recipe_types(), **OWN_SETTINGS})
    for name in arguments.predictors:
        make_predictor(name, arguments.space, **(settings if name == OURS else {}))
    if arguments.data:
        if arguments.space != "nasbench201":
            raise ConfigError(
                f"--data is read for nasbench201 only, and --space is {arguments.space}; leave --data out or give"
                " --space nasbench201"
            )
        api, column = nasbench201_table(arguments.data, arguments.column)
        data = f"{Path(arguments.data).name}:{column}"
    else:
        api, data = pickled_table(arguments.space, arguments.dataset), f"NASLib's files of {arguments.dataset}"
    space = make_space(arguments.space)
    results: dict[str, list[dict[str, Any]]] = {}
    failed: dict[str, str] = {}
    for number, name in enumerate(arguments.predictors):
        _log.info("evaluating %s, predictor %d of %d", name, number + 1, len(arguments.predictors))
        try:
            results[name] = _trials(name, space, api, settings, arguments)
        except Exception as error:  # NASLib's predictors raise anything on today's libraries
            if name == OURS:
                raise
            failed[name] = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
            _log.warning("predictor %s failed and is left out of the comparison: %s", name, failed[name])
    return {
        "space": arguments.space,
        "data": data,
        "train_sizes": arguments.train_size,
        "test_size": arguments.test_size,
        "trials": arguments.trials,
        "seed": arguments.seed,
        "hpo_seconds": arguments.hpo_seconds,
        "nnformer": settings,
        "results": results,
        "failed": failed,
        "machine": describe_machine("cpu", torch.get_num_threads()),
    }


def _trials(
    name: str,
    space: Any,
    api: dict[str, Any],
    settings: dict[str, Any],
    arguments: argparse.Namespace,
) -> list[dict[str, Any]]:
    rows = []
    for trial in range(arguments.trials):
        begin, seed = time.perf_counter(), arguments.seed + trial
        for row in evaluate(
            make_predictor(name, arguments.space, **(settings if name == OURS else {})),
            space,
            api,
            train_sizes=sorted(arguments.train_size),
            test_size=arguments.test_size,
            seed=seed,
            dataset=arguments.dataset,
            hpo_seconds=arguments.hpo_seconds,
        ):
            rows.append({"seed": seed, **row})
        _log.info("%s with seed %d took %.0f s", name, seed, time.perf_counter() - begin)
    return rows


def table(result: dict[str, Any]) -> str:
    """Format the result as text: means over trials, and the standard deviation of Kendall's tau."""
    title = (
        f"{result['space']} ({result['data']}), {result['test_size']} test architectures, {result['trials']} trial(s);"
        " tau against validation accuracy"
    )
    lines = [title, f"{'predictor':<14}{'train':>6}" + "".join(f"{name:>16}" for name in COLUMNS)]
    for name, rows in result["results"].items():
        for size in sorted({row["train_size"] for row in rows}):
            part = [row for row in rows if row["train_size"] == size]
            cells = []
            for column in COLUMNS:
                values = np.array([row[column] for row in part], np.float64)  # None becomes NaN
                cell = f"{values.mean():.3f}"
                cells.append(f"{cell} ±{values.std():.3f}" if column == "kendalltau" and len(part) > 1 else cell)
            lines.append(f"{name:<14}{size:>6}" + "".join(f"{cell:>16}" for cell in cells))
    lines += [f"{name:<14}failed: {why}" for name, why in result["failed"].items()]
    return "\n".join(lines)


def parser() -> argparse.ArgumentParser:
    result = argparse.ArgumentParser(
        prog="python -m naslib_ext.benchmark",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = result.add_argument
    add("--space", choices=SPACES, default="nasbench201", help="search space, by NASLib's name")
    add(
        "--predictors",
        nargs="+",
        default=[OURS, "xgb", "lgb", "gcn"],
        metavar="NAME",
        help="nnformer, or names of NASLib's predictors",
    )
    add("--train-size", nargs="+", type=_positive, default=[156], metavar="N", help="numbers of training architectures")
    add("--test-size", type=_positive, default=200, metavar="N", help="number of test architectures")
    add(
        "--data",
        metavar="TABLE.npz",
        help="table of all NAS-Bench-201 cells: ops (15625, 6) and columns of accuracies (15625,); by default NASLib's"
        " own data files are read",
    )
    add("--column", metavar="NAME", help="column of accuracies in the --data table")
    add("--dataset", default="cifar10", help="data set of NASLib's own data files")
    add("--trials", type=_positive, default=1, metavar="N", help="number of repetitions, each with the next seed")
    add("--seed", type=int, default=0, metavar="N", help="seed of the first repetition")
    add(
        "--hpo-seconds",
        type=int,
        default=0,
        metavar="N",
        help="NASLib's max_hpo_time: seconds of hyperparameter search",
    )
    add("--set", nargs="+", default=[], metavar="NAME=VALUE", help="settings of nnformer: recipe=paper epochs=150 ...")
    add("--out", type=Path, metavar="FILE.json", help="file for the results")
    return result


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"got {value}; expected 1 or more")
    return value


if __name__ == "__main__":
    raise SystemExit(main())
