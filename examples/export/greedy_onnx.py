"""Translate with an exported model, with onnxruntime and NumPy only.

The folder is written by ``nas-ext export --checkpoint subnet.pt --out exported``. Input is one sentence per line, with
tokens (or subwords) separated by spaces.

    echo "a man is riding a bike ." | python greedy_onnx.py exported [--beam 4]
"""

import argparse
import json
import sys
from pathlib import Path

import numpy as np
import onnxruntime


class Translator:
    """Exported translation model, with its dictionaries."""

    def __init__(self, folder, threads=1):
        folder = Path(folder)
        self.model = json.loads((folder / "model.json").read_text(encoding="utf-8"))
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        parts = {
            name: onnxruntime.InferenceSession(str(folder / part["file"]), options, providers=["CPUExecutionProvider"])
            for name, part in self.model["parts"].items()
        }
        self.encoder, self.decoder = parts["encoder"], parts["decoder_step"]
        self.outputs = [value.name for value in self.decoder.get_outputs()]
        self.eos, self.pad, self.unk = (self.model["tokens"][name] for name in ("eos", "pad", "unk"))
        self.source, self.target = (self._words(folder, side) for side in ("source", "target"))
        self.indices = {word: index for index, word in enumerate(self.source)}

    def _words(self, folder, side):
        lines = (folder / self.model["dictionaries"][side]).read_text(encoding="utf-8").split("\n")
        special = [""] * self.model["dictionary_first_index"]
        return special + [line.rsplit(" ", 1)[0] for line in lines if line]

    def encode(self, sentences):
        """Encode sentences, given as lists of token indices; return the inputs of the decoder."""
        max_length = max(len(sentence) for sentence in sentences)
        if max_length > self.model["limits"]["source"]:
            raise ValueError(f"a sentence has {max_length} tokens; expected at most {self.model['limits']['source']}")
        tokens = np.full((len(sentences), max_length), self.pad, np.int64)
        for row, sentence in zip(tokens, sentences, strict=True):
            row[: len(sentence)] = sentence
        return dict(zip(self.model["memory"], self.encoder.run(None, {"tokens": tokens}), strict=True))

    def start(self, batch):
        return {
            cache["input"]: np.zeros([batch if dim == "batch" else dim for dim in cache["start"]], np.float32)
            for cache in self.model["caches"]
        }

    def step(self, tokens, position, memory, caches):
        """Return log-probabilities (batch, vocabulary) of the next token, and the updated caches."""
        inputs = {"token": tokens, "position": np.array(position, np.int64), **memory, **caches}
        out = dict(zip(self.outputs, self.decoder.run(None, inputs), strict=True))
        scores = out["log_probs"]
        scores[:, self.pad] = -np.inf
        if position == 0:
            scores[:, self.eos] = -np.inf  # no empty translations
        return scores, {cache["input"]: out[cache["output"]] for cache in self.model["caches"]}

    def greedy(self, sentences, max_length=200):
        """Return translations by greedy decoding, as lists of token indices."""
        memory, caches = self.encode(sentences), self.start(len(sentences))
        tokens = np.full(len(sentences), self.eos, np.int64)
        unfinished, outputs = list(range(len(sentences))), [[] for _ in sentences]
        for position in range(min(max_length, self.model["limits"]["target"])):
            scores, caches = self.step(tokens, position, memory, caches)
            tokens = scores.argmax(1)
            for number, token in zip(unfinished, tokens, strict=True):
                outputs[number].append(int(token))
            active = np.flatnonzero(tokens != self.eos)
            if not len(active):
                break
            if len(active) < len(tokens):  # finished sentences leave the batch
                unfinished = [unfinished[row] for row in active]
                memory, caches = _rows(memory, active), _rows(caches, active)
                tokens = tokens[active]
        return [[token for token in tokens if token != self.eos] for tokens in outputs]

    def beam(self, sentence, width=4, max_length=200, power=1.0):
        """Return the translation by beam search with the highest log-probability / length ** ``power``."""
        memory, caches = _rows(self.encode([sentence]), [0] * width), self.start(width)
        tokens, sums = np.full(width, self.eos, np.int64), np.array([0.0] + [-np.inf] * (width - 1))
        paths, finished = [[] for _ in range(width)], []
        for position in range(min(max_length, self.model["limits"]["target"])):
            scores, caches = self.step(tokens, position, memory, caches)
            totals = (sums[:, None] + scores).ravel()
            best = np.argsort(-totals, kind="stable")[: 2 * width]
            beams = []
            for rank, flat in enumerate(best):
                row, token = divmod(int(flat), scores.shape[1])
                if token != self.eos:
                    beams.append((row, token, totals[flat]))
                elif rank < width:
                    finished.append((totals[flat] / (position + 1) ** power, paths[row]))
            if len(finished) >= width:
                break
            beams = beams[:width]
            paths = [[*paths[row], token] for row, token, _ in beams]
            tokens, sums = (
                np.array([token for _, token, _ in beams]),
                np.array([total for _, _, total in beams]),
            )
            caches = _rows(caches, [row for row, _, _ in beams])
        return max(finished, default=(0.0, paths[0]), key=lambda item: item[0])[1]

    def indices_of(self, line):
        return [*(self.indices.get(word, self.unk) for word in line.split()), self.eos]

    def text_of(self, tokens):
        return " ".join(self.target[token] or "<unk>" for token in tokens)


def _rows(tensors, rows):
    return {name: tensor[rows] for name, tensor in tensors.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", help="folder written by nas-ext export")
    parser.add_argument("--beam", type=int, default=1, help="beam size; 1: greedy decoding")
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    translator = Translator(arguments.folder, arguments.threads)
    for line in sys.stdin:
        sentence = translator.indices_of(line)
        if arguments.beam > 1:
            translation = translator.beam(sentence, arguments.beam)
        else:
            (translation,) = translator.greedy([sentence])
        print(translator.text_of(translation))


if __name__ == "__main__":
    main()
