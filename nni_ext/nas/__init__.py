"""Search strategies, profilers and evaluators for NNI's ``NasExperiment``."""
