"""Numpy tables in the form of NASLib's pickles."""

import itertools

import numpy as np
import pytest

from nas_core.errors import DataError
from nas_core.graph import nasbench201_string
from naslib_ext.evaluation import NASBench201Table, nasbench201_table

OPS = np.array(list(itertools.product(range(5), repeat=6)), np.int8)


def test_rows_are_found_by_the_architecture_string():
    accuracies = np.arange(len(OPS), dtype=np.float32) / 200
    table = NASBench201Table(OPS, accuracies, "cifar10-valid")
    for row in (0, 77, 15624):
        result = table[nasbench201_string(OPS[row])]["cifar10-valid"]
        assert result["eval_acc1es"][-1] == pytest.approx(accuracies[row])
        assert isinstance(result["eval_acc1es"][-1], float) and result["cost_info"]["train_time"] == 0.0


def test_files(tmp_path):
    path = tmp_path / "table.npz"
    columns = {name: np.full(10, value, np.float32) for name, value in (("c_val_200", 90), ("c_val_12", 80))}
    np.savez(path, ops=OPS[:10], params=np.arange(10), **columns)
    api, architecture = nasbench201_table(path), nasbench201_string(OPS[3])
    assert api["nb201_data"][architecture]["cifar10-valid"]["eval_acc1es"] == [90.0]
    api = nasbench201_table(path, "c_val_12")
    assert api["nb201_data"][architecture]["cifar10-valid"]["eval_acc1es"] == [80.0]
    with pytest.raises(DataError, match="15,625"):
        api["nb201_data"][nasbench201_string(OPS[-1])]
