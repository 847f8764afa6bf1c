"""Tables of published latencies: two forms of them, and what is wrong with others."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from nas_core.errors import ConfigError, DataError, UnknownChoiceError
from nas_core.latency.by_graph.published import PublishedNetwork, read_published
from tests.latency.by_graph.published.tiny import COLUMNS, table

OF_TIMM = (
    "model,infer_img_size,infer_samples_per_sec,infer_step_time,infer_batch_size,param_count,infer_gmacs,infer_macts\n"
    "resnet18,224,8000.5,127.99,1024,11.69,1.82,2.48\n"
    "resnet18.a1_in1k,288,100.0,2560.0,256,11.69,,\n"
)


def test_devices_of_a_table(tmp_path: Path) -> None:
    path = table(tmp_path / "t.csv", "i7,net,224,1,2.5,11.69,1.82,2.48", "gpu,net,224,64,8,11.69,,", "i7,net,96,1,1,,,")
    found = read_published(path)
    assert list(found.devices) == ["i7", "gpu"]
    first, second = found.devices["i7"]
    assert first == PublishedNetwork("net", 224, 1, 2.5, 11.69, 1.82, 2.48)
    assert (first.name, second.name) == ("net-224-b1", "net-96-b1") and second.costs == {}
    assert found.chosen("gpu")[1][0].costs == {"params_m": 11.69}
    assert found.fingerprint("i7") != found.fingerprint("gpu")
    with pytest.raises(
        UnknownChoiceError, match=r"unknown device .* 'i8': expected one of i7, gpu\. Did you mean 'i7'"
    ):
        found.chosen("i8")
    with pytest.raises(ConfigError, match="has measurements of i7, gpu; give one with --device"):
        found.chosen(None)


def test_files_as_timm_publishes_them(tmp_path: Path) -> None:
    path = tmp_path / "benchmark-infer-amp-rtx3090.csv.gz"
    path.write_bytes(gzip.compress(OF_TIMM.encode()))
    name, (first, second) = read_published(path).chosen(None)
    assert name == "amp-rtx3090"
    assert first == PublishedNetwork("resnet18", 224, 1024, 127.99, 11.69, 1.82, 2.48)
    assert second.name == "resnet18.a1_in1k-288-b256"
    assert list(read_published(path, "RTX 3090").devices) == ["RTX 3090"]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([], "has no measurement below its header"),
        (["i7,net,224,1,fast,1,1,1"], "line 2: step_ms is 'fast', expected a number above 0"),
        (["i7,net,224,1,nan,1,1,1"], "step_ms is 'nan'"),
        (["i7,net,224,1,1,1,1,1", "i7,net,224,0,1,1,1,1"], "line 3: batch_size is '0'"),
        (["i7,net,22.5,1,1,1,1,1"], "img_size is 22.5, expected a whole number"),
        (["i7,net,224,1,1,many,1,1"], "param_count_m is 'many'"),
        (["i7,net,224"], "batch_size is '', expected a number"),
        (["i7,../net,224,1,1,1,1,1"], "'../net' is no name of a model"),
        (["i7,hf_hub:a/b,224,1,1,1,1,1"], "is no name of a model"),
        ([",net,224,1,1,1,1,1"], "line 2: no device"),
        (
            ["i7,net,224,1,1,1,1,1", "i7,net,224,1,2,1,1,1"],
            "line 3: net at 224 pixels and batch 1 stands there a second",
        ),
    ],
)
def test_a_wrong_line_is_named(tmp_path: Path, rows: list[str], message: str) -> None:
    with pytest.raises(DataError, match=message):
        read_published(table(tmp_path / "t.csv", *rows))


def test_other_files(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="file not found"):
        read_published(tmp_path / "none.csv")
    for content, message in [
        (b"", "is empty; expected the columns model"),
        (b"\x1f\x8b\x00broken", "is no CSV file"),
        (b"\xff\xfe\x00", "is no CSV file"),
        (b"model,img_size,batch_size\nnet,224,1\n", "has no column step_ms or infer_step_time; it has model, img_size"),
        (COLUMNS.encode(), "has no measurement"),
    ]:
        (tmp_path / "t.csv").write_bytes(content)
        with pytest.raises(DataError, match=message):
            read_published(tmp_path / "t.csv")
