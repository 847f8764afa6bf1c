"""Neural architecture search without a host framework: spaces, layers, supernets, predictors, latency, search.

Nothing here imports fairseq, timm, NNI, NASLib or Optuna. The adapters ``fairseq_ext``, ``timm_ext``, ``nni_ext``,
``naslib_ext`` and ``optuna_ext`` import this package. ``pyproject.toml`` lists its layers.
"""

__version__ = "0.1.0"

__all__ = ["__version__"]
