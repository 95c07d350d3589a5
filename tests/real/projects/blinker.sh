stack='Python, uv'
repository=pallets-eco/blinker
commit=c3364059663df1ddce32799d6b1922af89a345f6
needs=uv
install() { uv sync -q; }
check() { uv run -q pytest -q; }
honest() {
    echo '# more' >>src/blinker/_utilities.py
    printf 'def test_real() -> None:\n    import blinker\n\n    assert blinker\n' >tests/test_real.py
}
broken() { sed -i 's/return id(obj)/return 1/' src/blinker/_utilities.py; }
dependency() {
    uv add -q tabulate==0.9.0
    printf 'from tabulate import tabulate  # type: ignore[import-untyped]\n\n\ndef table(rows: list[list[str]]) -> str:\n    return str(tabulate(rows))\n' >src/blinker/table.py
    printf 'from blinker.table import table\n\n\ndef test_table() -> None:\n    assert "a" in table([["a"]])\n' >tests/test_table.py
}
