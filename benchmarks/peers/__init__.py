"""W4 against other frameworks: plain FedAvg, the same network and data, by each one's public interface.

Their packages are in the extra `peers`, never in the core; install it into an environment of its own, because they have
wishes of their own about versions.
"""
