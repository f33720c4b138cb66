"""The Flower app of a site."""

from pathlib import Path

from fedcso.federation.client import client_app

app = client_app(Path(__file__).parent)
