"""Networks as plain `nn.Module`s, and `Functional`, which turns one into functions of its parameters."""

from fedcso.models.functional import Functional

__all__ = ["Functional"]
