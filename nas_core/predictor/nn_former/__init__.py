"""NN-Former (Xu et al., 2025): a graph transformer with attention to parents, children and siblings."""
