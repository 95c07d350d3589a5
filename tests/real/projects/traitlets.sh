stack='Python, hatch'
repository=ipython/traitlets
commit=f97e64b673bc0e9d607d8b40a3522ef3fd99165d
needs=hatch
install() { hatch env create test; }
check() { hatch run test:test -q; }
honest() {
    echo '# more' >>traitlets/utils/text.py
    printf 'def test_real() -> None:\n    import traitlets\n' >tests/utils/test_real.py
}
broken() { sed -i 's/raise TraitError/return TraitError/' traitlets/traitlets.py; }
dependency() {
    sed -i 's/^dynamic = \["version"\]/&\ndependencies = ["tabulate==0.9.0"]/' pyproject.toml
    printf 'from tabulate import tabulate\n\n\ndef table(rows: list[list[str]]) -> str:\n    return str(tabulate(rows))\n' >traitlets/utils/table.py
    printf 'from traitlets.utils.table import table\n\n\ndef test_table() -> None:\n    assert "a" in table([["a"]])\n' >tests/utils/test_table.py
}
