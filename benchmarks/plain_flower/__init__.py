"""An app of a few lines for Flower's own programs, whose rounds are empty."""
