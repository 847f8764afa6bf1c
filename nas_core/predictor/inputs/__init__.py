"""What predictors read beside graphs, and graphs as a model can read them."""
