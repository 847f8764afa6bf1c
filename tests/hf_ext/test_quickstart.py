from __future__ import annotations

from hf_ext.quickstart import ENCODER
from tests.contracts.quickstart import QuickstartContract


class TestEncoder(QuickstartContract):
    quickstart = ENCODER
    small = ("UPDATES=4", "SAMPLES=14", "EVALUATIONS=10")
    says = r"masked loss \d\.\d\d instead of \d\.\d\d nats, in \d+% of the time; all networks tried: "
    makes = ("out/trained/config.json", "out/run/report.html", "out/faster/model.safetensors")
