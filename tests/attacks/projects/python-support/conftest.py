import pytest

from support.compare import same


@pytest.fixture
def check():
    return same
