"""The Flower app of the coordinator."""

from pathlib import Path

from fedcso.federation.server import server_app

app = server_app(Path(__file__).parent)
