"""What several benchmarks need: published tables, plain references, results that are kept as they come."""
