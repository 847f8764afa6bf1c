"""Neural architecture search without a host: spaces, elastic layers, kinds of network, supernets, predictors, search.

The floors, each knowing only those before it:

- ``space`` (what can be chosen), ``layers`` (what a layer computes) and ``graph`` (a network as a graph);
- ``export`` (what leaves the project);
- ``models`` (kinds of network);
- ``supernet`` (how subnets share weights), ``predictor`` (what an architecture will score) and ``proxies`` (what
  untrained networks say of it);
- ``latency`` (what it costs measured);
- ``search`` (which one to take);
- ``studies`` (can it be trusted) and ``report`` (what a person looks at);
- ``quickstart`` (small examples that run) and the command line ``cli``.

``errors``, ``files``, ``registry`` and the other files beside these rooms serve every floor. Nothing here imports
fairseq, timm, NNI, NASLib or Optuna: the adapters ``fairseq_ext``, ``timm_ext``, ``nni_ext``, ``naslib_ext`` and
``optuna_ext`` import this package, never the reverse.
"""

__version__ = "0.1.0"

__all__ = ["__version__"]
