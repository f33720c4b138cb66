"""A federation with fedcso; config.yaml has its settings."""
