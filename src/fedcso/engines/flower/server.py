"""The former place of `fedcso.federation.server`, which app folders written by earlier versions import."""

from fedcso.federation.server import server_app as server_app
