"""Compare W4 with other frameworks: FedAvg with the same network and data, through their public interfaces.

Their packages are in the extra `peers`. Install it into a separate environment, because they require particular
versions of other packages.
"""
