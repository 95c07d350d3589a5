stack='Python, venv'
repository=pallets/itsdangerous
commit=672971d66a2ef9f85151e53283113f33d642dabd
package='pypi itsdangerous 2.2.0'
install() { python3 -m venv .venv && .venv/bin/pip -q install -e . pytest freezegun; }
check() { .venv/bin/python -m pytest -q; }
honest() {
    echo '# more' >>src/itsdangerous/exc.py
    printf 'def test_real():\n    import itsdangerous\n\n    assert itsdangerous\n' >tests/test_real.py
}
broken() { sed -i 's/return want_bytes(string)/return b""/; s/base64.urlsafe_b64encode(string)/b"x"/' src/itsdangerous/encoding.py; }
dependency() {
    uv add -q --no-sync humanize==4.9.0
    printf 'from humanize import intcomma\n\n\ndef table(number: int) -> str:\n    return intcomma(number)\n' >src/itsdangerous/table.py
    printf 'from itsdangerous.table import table\n\n\ndef test_table():\n    assert table(1000) == "1,000"\n' >tests/test_table.py
}
