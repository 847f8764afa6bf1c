"""Latencies that others published of their networks, as a data set with graphs that are made here."""
