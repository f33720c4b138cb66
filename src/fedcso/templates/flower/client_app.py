"""A site's part."""

from pathlib import Path

from fedcso.engines.flower.client import client_app

app = client_app(Path(__file__).parent)
