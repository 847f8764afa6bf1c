"""A small English-German grammar and lexicon, from which the corpora of the quickstart and of the demo are drawn."""
