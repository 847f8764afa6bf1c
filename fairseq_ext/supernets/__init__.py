"""Checkpoints of this plug-in as supernets of ``nas_core``: opened, evaluated with inherited weights, extracted.

What a family of models adds to :class:`fairseq_ext.supernets.base.FairseqSupernet` is one class in
:mod:`fairseq_ext.supernets.kinds`.
"""
