"""Comparisons that say what they saw."""


def same(left, right):
    assert left == right, f"{left} is not {right}"
