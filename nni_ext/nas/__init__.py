"""Search strategies, profilers and evaluators of NasExperiment."""
