stack='Python, C extension'
repository=pallets/markupsafe
commit=1251593f6b0e3b45f2cc8aba662622bc22d6a5e2
package='pypi markupsafe 3.0.2'
install() { python3 -m venv .venv && .venv/bin/pip -q install -e . pytest; }
check() { .venv/bin/python -m pytest -q; }
honest() {
    echo '# more' >>src/markupsafe/_native.py
    printf 'def test_real():\n    import markupsafe\n' >tests/test_real.py
}
broken() { sed -i 's/&amp;/\&ampersand;/' src/markupsafe/_native.py; }
dependency() {
    uv add -q --no-sync humanize==4.9.0
    printf 'from humanize import intcomma\n\n\ndef table(number: int) -> str:\n    return intcomma(number)\n' >src/markupsafe/table.py
    printf 'from markupsafe.table import table\n\n\ndef test_table():\n    assert table(1000) == "1,000"\n' >tests/test_table.py
}
