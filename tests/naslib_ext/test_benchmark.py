"""The command line, where there is no NASLib; with one: test_naslib.py."""

from naslib_ext import benchmark


def test_table():
    row = {"kendalltau": 0.5, "spearman": 0.6, "mae": 1.0, "fit_s": 2.0, "query_ms": 0.1, "one_query_ms": 3.0}
    result = {
        "space": "nasbench201",
        "data": "t.npz:val",
        "test_size": 20,
        "trials": 2,
        "results": {
            "nnformer": [{"train_size": n, **row, "kendalltau": tau} for n in (5, 10) for tau in (0.5, 0.7)],
            "xgb": [{"train_size": 5, **row, "spearman": None}],
        },
        "failed": {"gp": "MissingHostError: needs pyro-ppl"},
    }
    title, head, *lines = benchmark.table(result).splitlines()
    assert "20 test architectures" in title and "kendalltau" in head
    assert [line.split()[:3] for line in lines[:3]] == [
        ["nnformer", "5", "0.600"], ["nnformer", "10", "0.600"], ["xgb", "5", "0.500"]
    ]  # fmt: skip
    assert "±0.100" in lines[0] and "nan" in lines[2] and lines[3].endswith("needs pyro-ppl")
