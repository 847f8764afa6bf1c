"""A small German grammar and lexicon, from which the corpus of the demo is drawn."""
