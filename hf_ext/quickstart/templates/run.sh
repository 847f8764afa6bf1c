# From a trained encoder of Hugging Face to a faster one. Run in this folder: bash run.sh
set -euo pipefail; cd "$(dirname "$0")"
UPDATES=${UPDATES:-400}          # updates of the trained encoder, and of the supernet
SAMPLES=${SAMPLES:-20}           # architectures whose latency is measured
EVALUATIONS=${EVALUATIONS:-30}   # architectures that the search evaluates
LIMIT=${LIMIT:-50%}              # largest latency, relative to the trained encoder's
export UPDATES OMP_NUM_THREADS=1 PYTHONWARNINGS=ignore HF_HUB_OFFLINE=1
rm -rf out && mkdir out
step() {
    echo "$1"; shift; "$@" >>out/log.txt 2>&1 || { tail -n 5 out/log.txt; echo "failed, see out/log.txt"; exit 1; }
}
step "1/6 a small BERT, trained on texts/train.txt: $UPDATES updates" python train.py out/trained
step "2/6 its supernet, sorted by importance" nas-ext elastic --checkpoint out/trained --data texts --calibration-batches 4 \
    --out out/family --space-out out/family.yml
step "3/6 training of the supernet: $UPDATES updates" python train.py out/family out/supernet
step "4/6 latency of $SAMPLES networks, and a model of it" nas-ext latency collect --space out/family.yml --clock cpu \
    --workload length=16 --workload vocab="$(wc -l <vocab.txt)" --samples $SAMPLES --out out/latency.jsonl
step "    .." nas-ext latency fit --data out/latency.jsonl --out out/latency.json
step "5/6 the best of $EVALUATIONS networks of at most $LIMIT of the latency" nas-ext search --checkpoint out/supernet \
    --latency-model out/latency.json --limit latency_ms="$LIMIT" --evaluations $EVALUATIONS \
    --finalists 1 --no-measure --out out/run
step "    .." nas-ext report out/run
step "6/6 that network alone: the folder out/faster" nas-ext extract --checkpoint out/supernet \
    --arch out/run/best.json --out out/faster
python - <<'END'
import json, statistics, time, torch
from nas_core.supernet import open_supernet
from transformers import AutoModelForMaskedLM
torch.set_grad_enabled(False)
models, times = [AutoModelForMaskedLM.from_pretrained(f"out/{name}") for name in ("trained", "faster")], ([], [])
for turn in range(200):
    start = time.thread_time()
    models[turn % 2](torch.full((1, 16), 5))
    times[turn % 2].append(time.thread_time() - start)
family = open_supernet("out/family")
trained, best = family.evaluate(family.space.largest()), json.load(open("out/run/best.json"))
slow, faster = map(statistics.median, times)
said = f"masked loss {best['metrics']['loss']:.2f} instead of {trained['loss']:.2f} nats"
print(f"{said}, in {faster / slow:.0%} of the time; all networks tried: out/run/report.html")
END
