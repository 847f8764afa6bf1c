"""One worker of a distributed training: ``python -m tests.fairseq_ext.training.rank OUT ARGUMENTS``
runs fairseq-train and keeps what it drew and where its weights ended."""

import sys

import torch
from fairseq import trainer
from fairseq_cli.train import cli_main

from tests.fairseq_ext.running import recording


def main() -> None:
    out, arguments = sys.argv[1], sys.argv[2:]
    sys.argv = ["fairseq-train", *arguments]
    created = []
    build = trainer.Trainer.__init__

    def noted(self, *args, **kwargs):
        build(self, *args, **kwargs)
        created.append(self)

    trainer.Trainer.__init__ = noted
    with recording() as drawn:
        cli_main()
    model = created[0].get_model().state_dict()
    torch.save({"drawn": [architecture.to_dict() for architecture in drawn], "model": model}, out)


if __name__ == "__main__":
    main()
