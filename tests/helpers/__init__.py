"""What several tests and benchmarks share."""
