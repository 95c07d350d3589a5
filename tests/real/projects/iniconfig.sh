stack='Python, version from git'
repository=pytest-dev/iniconfig
commit=71901257f6cbf660e77b1077e00f11a0f440be1e
install() { python3 -m venv .venv && .venv/bin/pip -q install -e . pytest; }
check() { .venv/bin/python -m pytest -q; }
honest() {
    echo '# more' >>src/iniconfig/exceptions.py
    printf 'def test_real():\n    import iniconfig\n' >testing/test_real.py
}
broken() { sed -i 's/return self.config.get/return None and self.config.get/; s/raise ParseError/return ParseError/' src/iniconfig/*.py; }
dependency() {
    sed -i 's/^dynamic = \[/dependencies = ["tabulate==0.9.0"]\n&/' pyproject.toml
    printf 'from tabulate import tabulate\n\n\ndef table(rows):\n    return tabulate(rows)\n' >src/iniconfig/table.py
    printf 'from iniconfig.table import table\n\n\ndef test_table():\n    assert "a" in table([["a"]])\n' >testing/test_table.py
}
