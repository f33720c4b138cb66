"""From tables at several sites to a model one can decide with: the exported model, and the page about it."""
