"""Searches as strategies of NasExperiment, with predictors as profilers and evaluators."""
