"""stub"""

EXPERIMENTS: dict = {}
