stack='Python, poetry'
repository=python-poetry/cleo
commit=8c3f1bbf82d918fc137ad40db65c446e14564aac
needs=poetry
mends='run it where poetry reaches the JSON API of PyPI'
install() { POETRY_VIRTUALENVS_IN_PROJECT=true poetry install -q; }
check() { poetry run pytest -q; }
honest() {
    echo '# more' >>src/cleo/_utils.py
    printf 'from __future__ import annotations\n\n\ndef test_real() -> None:\n    import cleo\n' >tests/test_real.py
}
broken() { sed -i 's/return s.get_data()/return ""/' src/cleo/_utils.py; }
dependency() {
    poetry add -q tabulate==0.9.0
    printf 'from __future__ import annotations\n\nfrom tabulate import tabulate\n\n\ndef table(rows: list[list[str]]) -> str:\n    return str(tabulate(rows))\n' >src/cleo/_table.py
    printf 'from __future__ import annotations\n\nfrom cleo._table import table\n\n\ndef test_table() -> None:\n    assert "a" in table([["a"]])\n' >tests/test_table.py
}
