"""Numpy tables in the form of NASLib's pickles."""

import itertools

import numpy as np
import pytest

from nas_core.errors import DataError, UnknownChoiceError
from nas_core.graph import nasbench201_string
from naslib_ext.spaces import NASBench201Table, make_space, nasbench201_table

OPS = np.array(list(itertools.product(range(5), repeat=6)), np.int8)


def test_rows_are_found_by_the_architecture_string():
    accuracies = np.arange(len(OPS), dtype=np.float32) / 200
    table = NASBench201Table(OPS, accuracies, "cifar10-valid")
    for row in (0, 77, 15624):
        found = table[nasbench201_string(OPS[row])]["cifar10-valid"]
        assert found["eval_acc1es"][-1] == pytest.approx(accuracies[row])
        assert isinstance(found["eval_acc1es"][-1], float) and found["cost_info"]["train_time"] == 0.0


def test_files(tmp_path):
    path = tmp_path / "table.npz"
    columns = {name: np.full(10, value, np.float32) for name, value in (("c_val_200", 90), ("c_val_12", 80))}
    np.savez(path, ops=OPS[:10], params=np.arange(10), **columns)
    api, column = nasbench201_table(path)
    assert column == "c_val_200"
    architecture = nasbench201_string(OPS[3])
    assert api["nb201_data"][architecture]["cifar10-valid"]["eval_acc1es"] == [90.0]
    api, column = nasbench201_table(path, "c_val_12")
    assert column == "c_val_12" and api["nb201_data"][architecture]["cifar10-valid"]["eval_acc1es"] == [80.0]
    with pytest.raises(DataError, match="15,625"):
        api["nb201_data"][nasbench201_string(OPS[-1])]
    with pytest.raises(UnknownChoiceError, match=r"table.npz 'c_test'.*c_val_200"):
        nasbench201_table(path, "c_test")


def test_files_of_another_form(tmp_path):
    with pytest.raises(DataError, match="file not found"):
        nasbench201_table(tmp_path / "nothing.npz")
    (tmp_path / "text.npz").write_text("no table")
    with pytest.raises(DataError, match="cannot be read"):
        nasbench201_table(tmp_path / "text.npz")
    np.savez(tmp_path / "other.npz", latency=np.zeros(4))
    with pytest.raises(DataError, match=r"ops of shape \(0,\)"):
        nasbench201_table(tmp_path / "other.npz")


def test_spaces_that_the_evaluator_refuses():
    with pytest.raises(UnknownChoiceError, match="nasbench301"):
        make_space("transbench101_micro")
