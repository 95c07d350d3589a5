stack='Rust, trybuild'
repository=bitflags/bitflags
commit=c3f8d31d59f3ba8c05833fb322ecab8a2cb88060
install() { cargo fetch -q; }
check() { cargo test -q; }
honest() {
    printf '\n// more\n' >>src/lib.rs
    printf '#[test]\nfn real() {}\n' >tests/real.rs
}
broken() { sed -i 's/fn is_empty(&self) -> bool {/fn is_empty(\&self) -> bool { return true;/' src/traits.rs; }
dependency() {
    cargo add -q unicode-xid@0.2
    printf '\n/// Whether a name may begin with it.\npub fn real(c: char) -> bool {\n    unicode_xid::UnicodeXID::is_xid_start(c)\n}\n' >>src/lib.rs
    printf '#[test]\nfn real() {\n    assert!("a".chars().all(bitflags::real));\n}\n' >tests/dependency.rs
}
