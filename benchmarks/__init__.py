"""Benchmarks of fedcso, compared with ordinary loops and other frameworks. They are not tests."""
