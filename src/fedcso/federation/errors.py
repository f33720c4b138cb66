"""Errors at a site."""

from fedcso.core.errors import FedcsoError


class Tellable(FedcsoError):
    """An error at a site whose words hold no data, so that the coordinator may be told."""
