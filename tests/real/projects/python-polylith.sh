stack='Python, monorepo with poetry'
repository=DavidVujic/python-polylith
commit=ece7e3370d2e49e49901f7be9589e12097d5ab86
needs=poetry
mends='run it where poetry reaches the JSON API of PyPI'
install() { poetry install -q; }
check() { poetry run pytest -q; }
honest() {
    echo '# more' >>components/polylith/toml/__init__.py
    printf 'def test_real():\n    assert True\n' >test/components/polylith/toml/test_real.py
}
broken() { sed -i 's/"from": path}/"from": ""}/; s/return data.get("tool", {})/return {}/' components/polylith/toml/core.py; }
dependency() {
    poetry add -q tabulate==0.9.0
    printf 'from tabulate import tabulate\n\n\ndef table(rows):\n    return tabulate(rows)\n' >components/polylith/toml/table.py
    printf 'from polylith.toml.table import table\n\n\ndef test_table():\n    assert "a" in table([["a"]])\n' >test/components/polylith/toml/test_table.py
}
