"""A federation of fedcso: the settings are in config.yaml."""
