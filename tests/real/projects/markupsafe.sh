stack='Python, C extension'
repository=pallets/markupsafe
commit=1251593f6b0e3b45f2cc8aba662622bc22d6a5e2
install() { python3 -m venv .venv && .venv/bin/pip -q install -e . pytest; }
check() { .venv/bin/python -m pytest -q; }
honest() {
    echo '# more' >>src/markupsafe/_native.py
    printf 'def test_real():\n    import markupsafe\n' >tests/test_real.py
}
broken() { sed -i 's/&amp;/\&ampersand;/' src/markupsafe/_native.py; }
dependency() {
    uv add -q --no-sync tabulate==0.9.0
    printf 'from tabulate import tabulate\n\n\ndef table(rows: list[list[str]]) -> str:\n    return tabulate(rows)\n' >src/markupsafe/table.py
    printf 'from markupsafe.table import table\n\n\ndef test_table():\n    assert "a" in table([["a"]])\n' >tests/test_table.py
}
