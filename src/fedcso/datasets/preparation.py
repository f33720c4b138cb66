"""The former place of `fedcso.datasets.tables.prepare`, which LOADING.md beside exported models imports."""

from fedcso.datasets.tables.prepare import Preparation as Preparation
from fedcso.datasets.tables.read import read_table as read_table
