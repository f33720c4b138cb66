"""stub"""

EXPERIMENTS: dict[str, object] = {}
