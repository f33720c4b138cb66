"""The former place of `fedcso.federation.client`, which app folders written by earlier versions import."""

from fedcso.federation.client import client_app as client_app
