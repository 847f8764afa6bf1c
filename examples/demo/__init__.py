"""From a parallel corpus to a Pareto front of fast translation models, with the commands of fairseq and nas-ext."""
