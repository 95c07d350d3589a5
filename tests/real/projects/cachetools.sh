stack='Python, tox'
repository=tkem/cachetools
commit=28d4506f2a49d781ffbcecb095fa7aba5bb80aff
needs=tox
install() { tox -q -e py --notest; }
check() { tox -q -e py; }
honest() {
    echo '# more' >>src/cachetools/keys.py
    printf 'def test_real():\n    import cachetools\n' >tests/test_real.py
}
broken() { sed -i 's/return _HashedTuple(args)/return _HashedTuple(())/' src/cachetools/keys.py; }
dependency() {
    sed -i 's/^requires-python.*/&\ndependencies = ["tabulate==0.9.0"]/' pyproject.toml
    printf 'from tabulate import tabulate\n\n\ndef table(rows):\n    return tabulate(rows)\n' >src/cachetools/table.py
    printf 'from cachetools.table import table\n\n\ndef test_table():\n    assert "a" in table([["a"]])\n' >tests/test_table.py
}
