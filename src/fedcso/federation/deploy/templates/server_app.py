"""The coordinator's part."""

from pathlib import Path

from fedcso.federation.server import server_app

app = server_app(Path(__file__).parent)
