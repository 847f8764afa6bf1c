# Made-up metrics of the networks to train next.
python - <<'P'
import json
from pathlib import Path

path = Path("run/train_next.jsonl")
lines = [json.loads(line) for line in path.read_text().splitlines()]
for line in lines:
    line["metrics"]["test_top1"] = 60 + sum(line["genes"]["ffn_dim"]) / 20
path.write_text("".join(json.dumps(line) + "\n" for line in lines))
P
