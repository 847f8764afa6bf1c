# The corpus of the quickstart in bin, and a supernet with experts after two updates.
nas-ext quickstart translation first > /dev/null
fairseq-preprocess --source-lang en --target-lang de --joined-dictionary --workers 1 \
    --trainpref first/corpus/test --validpref first/corpus/valid --destdir bin
fairseq-train bin --task supernet_translation --arch mos_transformer_small \
    --mos layer --share-all-embeddings --criterion label_smoothed_cross_entropy --label-smoothing 0.1 --optimizer adam \
    --lr 1e-3 --max-tokens 1024 --max-update 2 --valid-random 0 --num-workers 0 --cpu --save-dir supernet \
    --no-epoch-checkpoints
