"""From tables at several sites to a model that people can decide with: search, yardsticks, export, page."""
