"""The quickstart of translation."""

from __future__ import annotations

from fairseq_ext.quickstart import TRANSLATION
from tests.contracts.quickstart import QuickstartContract


class TestTranslation(QuickstartContract):
    quickstart = TRANSLATION
    small = ("UPDATES=2", "SAMPLES=16", "EVALUATIONS=10")
    says = r"BLEU \d+\.\d\d at \d+\.\d ms a sentence, measured here; all networks tried: out/run/report.html"
    makes = ("out/bin", "out/supernet/checkpoint_last.pt", "out/latency.json", "out/run/report.html", "out/subnet.pt")
