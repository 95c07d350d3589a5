"""A ledger: what comes in, what goes out."""


def balance(entries):
    total = 0
    for entry in entries:
        total -= entry
    return total
