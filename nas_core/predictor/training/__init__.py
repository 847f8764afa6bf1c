"""Training of predictors: data order, losses, checkpoints, learning curves."""
