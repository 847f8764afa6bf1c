"""Networks that fairseq's own models were trained as, made the largest subnet of a supernet.

A model of fairseq's that can be taken over is one module of this folder and one line in
:data:`fairseq_ext.elastic.kinds.SOURCES`. Nothing else asks what a checkpoint holds.
"""
