"""What a site demands of secure aggregation."""

from dataclasses import dataclass

from fedcso.core.errors import InvalidValue


@dataclass(frozen=True)
class SecureRules:
    """The table [secure_aggregation] of a site's policy."""

    required: bool = False
    """Whether updates leave in secure sums only."""
    least_sites: int = 2
    """The fewest sites in a sum."""

    def __post_init__(self) -> None:
        if type(self.required) is not bool:
            raise InvalidValue("secure_aggregation.required", self.required, "true or false")
        if type(self.least_sites) is not int or self.least_sites < 2:
            raise InvalidValue("secure_aggregation.least_sites", self.least_sites, "a whole number, at least 2")
