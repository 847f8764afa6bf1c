"""Parts of the benchmarks of trained networks that are taken over."""
