"""Neural architecture search without a host framework: spaces, layers, supernets, predictors, latency, search.

The adapters ``fairseq_ext``, ``timm_ext``, ``hf_ext``, ``nni_ext``, ``naslib_ext`` and ``optuna_ext`` import this
package.
"""

__version__ = "0.1.0"

__all__ = ["__version__"]
