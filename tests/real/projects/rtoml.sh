stack='Python and Rust, maturin and uv'
repository=samuelcolvin/rtoml
commit=527eee0904f1ba12c659e467b1181d0c44c05655
needs=uv
install() { uv sync -q && cargo fetch -q; }
check() { uv run -q pytest -q && cargo test -q; }
honest() {
    echo '# more' >>python/rtoml/__init__.py
    printf 'def test_real():\n    import rtoml\n' >tests/test_real.py
}
broken() { sed -i 's/    return loads(toml, none_value=none_value)/    return {}/' python/rtoml/__init__.py; }
dependency() {
    uv add -q --no-sync tabulate==0.9.0
    printf 'from tabulate import tabulate\n\n\ndef table(rows: list[list[str]]) -> str:\n    return str(tabulate(rows))\n' >python/rtoml/table.py
    printf "from rtoml.table import table\n\n\ndef test_table():\n    assert 'a' in table([['a']])\n" >tests/test_table.py
}
