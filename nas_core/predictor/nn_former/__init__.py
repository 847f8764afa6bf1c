"""NN-Former: a transformer over graphs whose attention knows parents, children and siblings."""
