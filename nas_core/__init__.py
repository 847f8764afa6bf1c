"""Neural architecture search without a host: spaces, elastic layers, supernets, cost, latency, predictors and search.

The floors, each knowing only those before it:

- ``space`` (what can be chosen) and ``layers`` (what a layer computes) stand on the ground;
- ``supernet``, ``graph``, ``cost``, ``latency`` and ``search`` stand on them;
- ``predictor`` and ``report`` come above, the command line ``cli`` on top.

``errors``, ``files`` and ``optional`` serve every floor. Nothing here imports fairseq, timm, NNI or NASLib: the
adapters ``fairseq_ext``, ``timm_ext``, ``nni_ext`` and ``naslib_ext`` import this package, never the reverse.
"""

__version__ = "0.1.0"

__all__ = ["__version__"]
