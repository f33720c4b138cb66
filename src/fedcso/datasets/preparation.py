"""The former place of `fedcso.datasets.tables.prepare`, which LOADING.md beside exported models imports."""

from fedcso.datasets.tables.prepare import Preparation as Preparation
