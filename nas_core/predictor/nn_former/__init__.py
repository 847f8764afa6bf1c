"""NN-Former: a graph transformer with attention to parents, children and siblings."""
