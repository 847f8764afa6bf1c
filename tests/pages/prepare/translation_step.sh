# A supernet after one update on twenty equal sentences, where fairseq is installed.
mkdir text
for part in train valid; do
    printf 'two dogs play\n%.0s' {1..20} > text/$part.en
    printf 'zwei Hunde spielen\n%.0s' {1..20} > text/$part.de
done
if command -v fairseq-train; then
    fairseq-preprocess -s en -t de --joined-dictionary --trainpref text/train --validpref text/valid --destdir BIN
    fairseq-train BIN --task supernet_translation --arch hat_transformer_small --cpu \
        --share-all-embeddings --criterion fused_label_smoothed_cross_entropy --optimizer adam --lr 1e-3 --max-update 1 \
        --max-tokens 100 --num-workers 0 --save-dir supernet --no-epoch-checkpoints
    mv supernet/checkpoint_last.pt supernet/checkpoint_best.pt
fi
