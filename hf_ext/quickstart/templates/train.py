"""Train on texts/train.txt: `train.py OUT` makes a small encoder, `train.py FAMILY OUT` trains a supernet."""

import os
import sys
from pathlib import Path

from transformers import (
    AutoTokenizer,
    BertConfig,
    BertForMaskedLM,
    BertTokenizer,
    DataCollatorForLanguageModeling,
    Trainer,
    TrainingArguments,
)

from hf_ext import SupernetTrainer

*family, out = sys.argv[1:]
updates = int(os.environ.get("UPDATES", "400"))
tokenizer = AutoTokenizer.from_pretrained(family[0]) if family else BertTokenizer("vocab.txt", model_max_length=32)
arguments = TrainingArguments(
    out, max_steps=updates, per_device_train_batch_size=32, learning_rate=2e-3,
    warmup_steps=updates // 10, save_strategy="no", report_to=[], disable_tqdm=True, use_cpu=True,
)  # fmt: skip
options = {
    "args": arguments,
    "train_dataset": [dict(tokenizer(line)) for line in Path("texts/train.txt").read_text().splitlines()],
    "data_collator": DataCollatorForLanguageModeling(tokenizer),
}
if family:  # the largest network is the teacher of the others
    trainer = SupernetTrainer(family[0], distill="logits", **options)
else:
    sizes = {"hidden_size": 128, "num_hidden_layers": 6, "num_attention_heads": 4, "intermediate_size": 512}
    config = BertConfig(vocab_size=len(tokenizer), max_position_embeddings=32, **sizes)
    trainer = Trainer(BertForMaskedLM(config), **options)
trainer.train()
trainer.save_model(out)
tokenizer.save_pretrained(out)
