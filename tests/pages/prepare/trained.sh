# Six trained networks of tiny.yml with made-up metrics.
python - <<'P'
import json
from pathlib import Path

import numpy as np

from nas_core.space import load_space

space = load_space("tiny.yml")
networks = dict.fromkeys(space.architectures(space.sample_rows(np.random.default_rng(5), 12)))
records = [
    {"genes": net.to_dict(), "metrics": {"test_top1": 60 + sum(net["ffn_dim"]) / 20}} for net in list(networks)[:6]
]
Path("trained.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
P
