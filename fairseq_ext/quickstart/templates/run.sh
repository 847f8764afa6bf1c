# From a parallel corpus to a fast translation network. Run in this folder: bash run.sh
set -euo pipefail; cd "$(dirname "$0")"
SOURCE=en TARGET=de              # corpus/train.en is translated into corpus/train.de, line by line
UPDATES=${UPDATES:-500}          # updates of the supernet; your own corpus needs thousands
SAMPLES=${SAMPLES:-24}           # architectures whose latency is measured
EVALUATIONS=${EVALUATIONS:-30}   # architectures that the search evaluates
LIMIT=${LIMIT:-}                 # milliseconds per sentence; empty: the median measurement
export OMP_NUM_THREADS=1 PYTHONWARNINGS=ignore
rm -rf out && mkdir out
step() {
    echo "$1"; shift; "$@" >>out/log.txt 2>&1 || { tail -n 5 out/log.txt; echo "failed, see out/log.txt"; exit 1; }
}
step "1/6 words to numbers" fairseq-preprocess -s $SOURCE -t $TARGET --joined-dictionary --workers 1 \
    --trainpref corpus/train --validpref corpus/valid --testpref corpus/test --destdir out/bin
step "2/6 one supernet for all networks of hat_small: $UPDATES updates" fairseq-train out/bin \
    --task supernet_translation --arch mos_transformer_small --search-space hat_small --mos neuron --normalize-before \
    --share-all-embeddings --criterion fused_label_smoothed_cross_entropy --dropout 0 --optimizer adam --lr 5e-3 \
    --lr-scheduler polynomial_decay --warmup-updates 30 --total-num-update $UPDATES --max-update $UPDATES \
    --max-tokens 512 --num-workers 0 --cpu --save-dir out/supernet --no-epoch-checkpoints --disable-validation
step "3/6 latency of $SAMPLES networks on this machine, and a model of it" nas-ext latency collect --space hat_small \
    --data out/bin --out out/latency.jsonl --samples $SAMPLES --workload source_length=7 --workload target_length=7 --clock cpu
step "    .." nas-ext latency fit --data out/latency.jsonl --out out/latency.json
median='import json, statistics; rows = map(json.loads, open("out/latency.jsonl"))
print(round(statistics.median(row["latency_ms"] for row in rows if "latency_ms" in row), 1))'
LIMIT=${LIMIT:-$(python -c "$median")}
step "4/6 the best of $EVALUATIONS networks of at most $LIMIT ms" nas-ext search --finalists 3 \
    --checkpoint out/supernet/checkpoint_last.pt --latency-model out/latency.json --limit latency_ms="$LIMIT" \
    --evaluations $EVALUATIONS --out out/run
step "    .." nas-ext report out/run
ms=$(python -c 'import json; found = json.load(open("out/run/finalists.json"))["finalists"]
one = next((one for one in found if one["best_of"]), found[0])
print(round(one["measured"]["latency_ms"], 1))')
step "5/6 that network alone: out/subnet.pt" nas-ext extract --checkpoint out/supernet/checkpoint_last.pt \
    --arch out/run/best.json --out out/subnet.pt
step "6/6 translations of corpus/test" fairseq-generate out/bin --path out/subnet.pt --beam 4 \
    --max-len-b 20 --cpu
sed -n 's/^[STD]-[0-9]*\t\(-[0-9.]*\t\)\{0,1\}/    /p' out/log.txt | head -n 6 || true
bleu=$(grep -o 'BLEU4 = [0-9.]*' out/log.txt | cut -c 9-)
echo "BLEU $bleu at $ms ms a sentence, measured here; all networks tried: out/run/report.html"
