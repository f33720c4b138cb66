"""Former location of `fedcso.datasets.tables.prepare`; LOADING.md of exported models imports from here."""

from fedcso.datasets.tables.prepare import Preparation as Preparation
from fedcso.datasets.tables.read import read_table as read_table
