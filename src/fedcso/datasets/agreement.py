"""Sites with tables of their own agree on how columns become numbers, without showing each other any row."""

from typing import Any


def describe_table(data: str, label: str = "", positive: str = "") -> dict[str, Any]:
    raise NotImplementedError


def agree(tables: list[dict[str, Any]]) -> dict[str, Any]:
    raise NotImplementedError
