"""The built-in corpus: its German against sentences and rules written by hand."""

from __future__ import annotations

import re

import pytest

from fairseq_ext.quickstart.corpus import corpus

Pairs = list[tuple[str, str]]
GENDER = {"Mann": "m", "Hund": "m", "Hut": "m", "Frau": "f", "Katze": "f", "Lampe": "f", "Kind": "n", "Buch": "n"}
ALLOWED = {"der": "mf", "den": "m", "dem": "mn", "das": "n", "die": "f", "einen": "m", "einem": "mn", "eine": "f"}
ENDINGS = {("der", "m"): "e", ("der", "f"): "en", ("den", "m"): "en", ("das", "n"): "e", ("ein", "n"): "es"}


@pytest.fixture(scope="module")
def pairs() -> Pairs:
    return corpus({"train": 8000}, clauses=2)["train"]


def test_sizes_and_distinct_sources() -> None:
    splits = corpus({"test": 50, "valid": 60, "train": 700}, words=0.5, clauses=1)
    assert {name: len(pairs) for name, pairs in splits.items()} == {"test": 50, "valid": 60, "train": 700}
    assert len({english for pairs in splits.values() for english, _ in pairs}) == 810
    assert all(re.fullmatch(r"\w+( \w+)* \.", side) and len(side.split()) < 12 for p in splits["train"] for side in p)


def test_the_seed_decides() -> None:
    assert corpus({"train": 20}, seed=3) == corpus({"train": 20}, seed=3) != corpus({"train": 20}, seed=4)


def test_articles_and_adjectives_agree_with_the_noun(pairs: Pairs) -> None:
    checked = set()
    for _, german in pairs:
        for article, adjective, noun in re.findall(r"(?<!, )\b(\w+) (?:([a-zü]\w+) )?([A-ZÄÖÜ]\w+)", german):
            gender = GENDER.get(noun)
            if gender and article in ALLOWED:
                assert gender in ALLOWED[article], german
                if ending := ENDINGS.get((article, gender)) if adjective else None:
                    assert adjective.endswith(ending), german
                checked.add((article, noun))
    assert len(checked) > 15


def test_verbs_end_subordinate_clauses_and_are_second_in_main_clauses(pairs: Pairs) -> None:
    finite = {"hat", "haben", "wird", "werden"}
    subordinate = [
        german.split(" weil ")[1].split()[-2]
        for english, german in pairs
        if "yesterday" in english and " weil " in german
    ]
    assert len(subordinate) > 20 and set(subordinate) <= {"hat", "haben"}
    fronted = [german.split()[1] for _, german in pairs if german.startswith(("gestern ", "morgen "))]
    assert len(fronted) > 500 and set(fronted) <= finite


@pytest.mark.parametrize(
    ("english", "german"),
    [
        (r"\bopens\b", r"\b(macht .*auf|aufmacht)\b"),
        (r"\bheld\b", r"\bfestgehalten\b"),
        (r"\bthe children\b", r"\b(die|den) (\w+en )?Kindern?\b|\bdie Kinder\b"),
        (r"\bhelps the (\w+ )?man\b", r"\bdem (\w+en )?Mann\b"),
        (r"\bthe hat\b.*\bit\b", r"\bHut\b"),
    ],
)  # fmt: skip
def test_translations(pairs: Pairs, english: str, german: str) -> None:
    matching = [pair for pair in pairs if re.search(english, pair[0])]
    assert matching and all(re.search(german, pair[1]) for pair in matching)
