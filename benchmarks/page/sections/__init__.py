"""The sections of the page, by subject as the benchmarks are."""
