stack='Python, uv and setuptools'
repository=lepture/mistune
commit=b5dd9949baf3729a709ef8ae591eab86e72a9e46
needs=uv
install() { uv sync -q --group test; }
check() { uv run -q pytest -q; }
honest() {
    echo '# more' >>src/mistune/util.py
    printf 'def test_real() -> None:\n    import mistune\n\n    assert mistune\n' >tests/test_real.py
}
broken() { sed -i 's/&amp;/\&ampersand;/' src/mistune/util.py; }
dependency() {
    uv add -q tabulate==0.9.0
    printf 'from tabulate import tabulate  # type: ignore\n\n\ndef table(rows: list[list[str]]) -> str:\n    return str(tabulate(rows))\n' >src/mistune/table.py
    printf 'from mistune.table import table\n\n\ndef test_table() -> None:\n    assert "a" in table([["a"]])\n' >tests/test_table.py
}
