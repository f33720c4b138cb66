"""Former location of `fedcso.datasets.tables.encoders`; LOADING.md of exported models imports from here."""

from fedcso.datasets.tables.encoders import Preparation as Preparation
from fedcso.datasets.tables.read import read_table as read_table
