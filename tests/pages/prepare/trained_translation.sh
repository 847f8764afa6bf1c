# The corpus of the quickstart in first/bin, and fairseq's transformer after two updates.
nas-ext quickstart translation first > /dev/null
cd first
fairseq-preprocess --source-lang en --target-lang de --joined-dictionary --workers 1 \
    --trainpref corpus/test --validpref corpus/valid --destdir bin
fairseq-train bin --arch transformer --share-all-embeddings --encoder-normalize-before --decoder-normalize-before \
    --encoder-layers 3 --encoder-embed-dim 128 --encoder-ffn-embed-dim 512 --encoder-attention-heads 4 \
    --decoder-layers 3 --decoder-embed-dim 128 --decoder-ffn-embed-dim 512 --decoder-attention-heads 4 \
    --criterion label_smoothed_cross_entropy --optimizer adam --lr 5e-3 --max-tokens 1024 --max-update 2 \
    --num-workers 0 --cpu --save-dir trained --no-epoch-checkpoints
