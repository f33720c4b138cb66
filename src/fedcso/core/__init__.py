"""The central types (problem, estimator, algorithm, codec, plan, task, judge, metric) and the tools they are built on.

This package imports nothing from the others.
"""
