"""The coordinator's part."""

from pathlib import Path

from fedcso.engines.flower.server import server_app

app = server_app(Path(__file__).parent)
