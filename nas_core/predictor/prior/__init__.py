"""What predictors know before they are taught."""

from nas_core.predictor.prior.model import Benchmark, Prior
from nas_core.predictor.prior.shipped import read_prior, shipped_prior, write_prior
from nas_core.predictor.statistics.operation_features import operation_features

__all__ = ["Benchmark", "Prior", "operation_features", "read_prior", "shipped_prior", "write_prior"]
