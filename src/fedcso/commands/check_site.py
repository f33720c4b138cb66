"""What would leave a site with this table before it joins a federation: shapes and counts, never rows."""

HELP = "what would leave a site that joins a federation"


def main(arguments: list[str]) -> int:
    """Say it."""
    return 0
