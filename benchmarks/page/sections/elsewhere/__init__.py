"""What was measured on the machines of those who run `make bench` and `make bench-cuda`, as their files say it."""
