"""Says how long the tests took."""

import time

BEGUN = time.monotonic()


def pytest_terminal_summary(terminalreporter):
    terminalreporter.line(f"timing: {time.monotonic() - BEGUN > 0}")
