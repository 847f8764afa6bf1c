"""Neural architecture search without a host: spaces, elastic layers, kinds of network, supernets, predictors, search.

The floors, each knowing only those before it:

- ``space`` (what can be chosen), ``layers`` (what a layer computes) and ``graph`` (a network as a graph);
- ``export`` (what leaves the project);
- ``models`` (kinds of network);
- ``supernet`` (how subnets share weights) and ``predictor`` (what an architecture will score);
- ``latency`` (what it costs measured);
- ``search`` (which one to take);
- ``report`` (what a person looks at);
- the command line ``cli``.

``errors``, ``files``, ``registry`` and the other files beside these rooms serve every floor. Nothing here imports
fairseq, timm, NNI or NASLib: the adapters ``fairseq_ext``, ``timm_ext``, ``nni_ext`` and ``naslib_ext`` import this
package, never the reverse.
"""

__version__ = "0.1.0"

__all__ = ["__version__"]
