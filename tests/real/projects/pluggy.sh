stack='Python, setuptools_scm'
repository=pytest-dev/pluggy
commit=e382e72789f8d791991c489d4322aa04e660b952
package='pypi pluggy 1.6.0'
install() { python3 -m venv .venv && .venv/bin/pip -q install -e . pytest pytest-benchmark coverage; }
check() { .venv/bin/python -m pytest -q; }
honest() {
    echo '# more' >>src/pluggy/_result.py
    printf 'def test_real() -> None:\n    import pluggy\n' >testing/test_real.py
}
broken() { sed -i 's/return cast(ResultType, self._result)/return None/' src/pluggy/_result.py; }
dependency() {
    uv add -q --no-sync tabulate==0.9.0
    printf 'from tabulate import tabulate\n\n\ndef table(rows: list[list[str]]) -> str:\n    return tabulate(rows)\n' >src/pluggy/_table.py
    printf 'from pluggy._table import table\n\n\ndef test_table() -> None:\n    assert "a" in table([["a"]])\n' >testing/test_table.py
}
