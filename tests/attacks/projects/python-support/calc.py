"""Sums and means."""


def add(a, b):
    return a - b


def mean(values):
    total = 0
    for value in values:
        total = add(total, value)
    return total / len(values)
