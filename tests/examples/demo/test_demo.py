"""The demo's parts, and the demo itself from the corpus to the report."""

import json
import sys

import pytest

from examples.demo import demo, settings, stages, translate
from nas_core.errors import ConfigError, DataError
from nas_core.locks import only_process
from nas_core.options import options_of
from nas_core.report import read_run
from tests.report.pages import ReadPage

TINY = [
    *("--updates", "30", "--pairs", "1200", "--samples", "16", "--iterations", "1", "--population", "8"),
    *("--limits", "2", "--valid-sentences", "20", "--threads", "1", "--train-args", "--log-interval 10"),
]


def python(code):
    return [sys.executable, "-c", code]


def test_settings_from_the_command_line(tmp_path):
    parsed = settings.parse(["--out", str(tmp_path), "--minutes", "2.5", "--mos", "layer"])
    assert (parsed.minutes, parsed.mos, parsed.subword_size, parsed.budget) == (2.5, "layer", 0, (2.5, 0))
    assert settings.parse(["--data", "x"]).subword_size == settings.DEFAULT_SUBWORDS
    assert settings.parse([]).budget == (settings.DEFAULT_MINUTES, 0)
    assert settings.parse(["--updates", "9"]).budget == (0.0, 9)
    assert all(option.help for option in options_of(settings.Settings))


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--pairs", "3"], "--pairs is 3, expected at least 100"),
        (["--lower"], "with --data"),
        (["--updates", "3", "--minutes", "1"], "give one of them"),
        (["--train-args", "'"], "cannot be split"),
    ],
)
def test_wrong_settings(argv, message, capsys):
    assert demo.main(argv) == 2
    assert message in capsys.readouterr().err


def test_a_run_folder_belongs_to_its_settings(tmp_path):
    begun = settings.parse(["--out", str(tmp_path)])
    begun.settle()
    settings.parse(["--out", str(tmp_path), "--minutes", "9", "--limits", "5"]).settle()
    with pytest.raises(ConfigError, match=r"mos = 'neuron', now it is 'none'; .*--restart"):
        settings.parse(["--out", str(tmp_path), "--mos", "none"]).settle()


def test_two_demos_do_not_share_a_folder(tmp_path, capsys):
    with only_process(tmp_path / ".run.lock", "runs the demo", ""):
        assert demo.main(["--out", str(tmp_path / "run"), "--restart"]) == 2
    assert f"runs the demo in {tmp_path / 'run'}; wait for it to end" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_stages_are_skipped_continued_and_begun_anew(tmp_path, capsys):
    calls, out = [], tmp_path / "out"

    def stage(inputs, action=lambda: (calls.append(1), out.write_text("x"))):
        runner = stages.Runner(tmp_path, 1, 1)
        runner.stage("one", "first stage", inputs, [out], action, fresh=[out])

    stage([1])
    stage([1])
    assert len(calls) == 1
    assert "done before" in capsys.readouterr().out
    stage([2])
    assert len(calls) == 2
    seen = []

    def interrupted():
        seen.append(out.exists())
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stage([3], interrupted)
    assert seen == [False]  # made with other inputs: removed
    out.write_text("half")
    stage([3], lambda: seen.append(out.exists()))
    assert seen == [False, True]  # same inputs: continued


def test_time_of_an_interrupted_stage_counts(tmp_path, monkeypatch):
    now = [0.0]
    monkeypatch.setattr(stages.time, "monotonic", lambda: now[0])

    def stage(seconds, interrupted=False, inputs=()):
        def action():
            now[0] += seconds
            if interrupted:
                raise KeyboardInterrupt

        runner = stages.Runner(tmp_path, 1, 1)
        runner.stage("one", "first stage", list(inputs), [], action)
        return runner.times["one"]

    with pytest.raises(KeyboardInterrupt):
        stage(300, interrupted=True)
    with pytest.raises(KeyboardInterrupt):
        stage(20, interrupted=True)
    assert stage(5) == 325
    assert stage(7, inputs=[1]) == 7


def test_a_failing_command_shows_the_end_of_its_log(tmp_path, capsys):
    runner = stages.Runner(tmp_path, 1, 1)
    code = "print('begin'); print('the reason'); import sys; sys.exit(3)"
    with pytest.raises(stages.StageError, match=r"stage 'bad': .* failed \(exit code 3\); the whole log is .*bad.log"):
        runner.stage("bad", "bad stage", [], [], lambda: runner.command(python(code)))
    assert "| the reason" in capsys.readouterr().out
    assert "the reason" in (tmp_path / "logs" / "bad.log").read_text()
    with pytest.raises(stages.StageError, match="ended without writing"):
        runner.stage("none", "writes nothing", [], [tmp_path / "absent"], lambda: None)
    with pytest.raises(stages.StageError, match="cannot start"):
        runner.command([tmp_path / "no-such-command"])


def test_a_command_that_has_told_enough_is_ended(tmp_path):
    runner = stages.Runner(tmp_path, 1, 1)
    code = "import time\nfor n in range(10**6): print(n, flush=True); time.sleep(0.01)"
    told = runner.command(python(code), until=lambda line: line == "3\n")
    assert told == "0\n1\n2\n3\n"


def test_a_killed_command_is_told_from_a_failed_one(tmp_path):
    runner = stages.Runner(tmp_path, 1, 1)
    code = "import os; os.kill(os.getpid(), 9)"
    with pytest.raises(stages.StageError, match=r"was killed \(signal 9\).*memory.*goes on from here"):
        runner.stage("big", "takes all memory", [], [], lambda: runner.command(python(code)))


def test_hypotheses_are_put_in_order(tmp_path):
    generated = "S-1\tx\nH-1\t-0.5\tder Hund ‿.\nD-1\t-0.5\tx\nH-0\t-0.1\t\n"
    assert translate.hypotheses(generated, tmp_path, 2) == ["", "der Hund."]
    with pytest.raises(DataError, match="1 of 3 test sentences"):
        translate.hypotheses(generated, tmp_path, 3)
    assert translate.bleu(["der alte Hund schläft."], ["der alte Hund schläft."])[0] == pytest.approx(100)


def test_examples_show_differences():
    references = ["a b c d e f g h", "a b c d e f g x", "a b c d e f g y"]
    outputs = {
        "small": ["a b c d e f g h", "wrong", "also wrong"],
        "large": ["a b c d e f g h", "a b c d e f g x", "z"],
    }
    assert translate.telling_examples(outputs, references, 1) == [1]


def test_missing_data_folder_is_one_line(tmp_path, capsys):
    assert demo.main(["--out", str(tmp_path / "run"), "--data", str(tmp_path / "absent")]) == 2
    error = capsys.readouterr().err
    assert error.startswith("demo: error: no folder")
    assert error.count("\n") == 1
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
@pytest.mark.fairseq
@pytest.mark.timeout(1800)
@pytest.mark.usefixtures("warm_programs")
def test_end_to_end(tmp_path, capsys):
    pytest.importorskip("fairseq")
    out = tmp_path / "run"
    assert demo.main(["--out", str(out), *TINY]) == 0
    shown = capsys.readouterr().out
    assert "smallest" in shown and "BLEU" in shown
    results = json.loads((out / "results.json").read_text(encoding="utf-8"))
    names = [row["name"] for row in results["subnets"]]
    assert names[0] == "smallest" and names[-1] == "largest" and len(names) >= 3
    for row in results["subnets"]:
        assert row["measured_ms"] > 0 and row["predicted_ms"] > 0 and row["loss"] > 0 and 0 <= row["bleu"] <= 100
    page = (out / "report.html").read_text(encoding="utf-8")
    assert page.count('<img alt="') == 5
    assert len(ReadPage(page).data["points"]["rows"]) == len(read_run(out / "search").evaluations)
    assert results["examples"][0]["source"] in page
    assert demo.main(["--out", str(out), *TINY]) == 0
    assert capsys.readouterr().out.count("done before") == 8
