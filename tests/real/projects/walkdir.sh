stack='Rust, workspace, no lock file'
repository=BurntSushi/walkdir
commit=6fd031c82ba5a4204b4ce6eae73dacb00dc072ec
install() { cargo fetch -q; }
check() { cargo test -q; }
honest() {
    printf '\n// more\n' >>src/error.rs
    mkdir -p tests && printf '#[test]\nfn real() {}\n' >tests/real.rs
}
broken() { sed -i 's/self.depth$/self.depth + 1/' src/dent.rs; }
dependency() {
    cargo add -q unicode-xid@0.2
    printf '\n/// Whether a name may begin with it.\npub fn real(c: char) -> bool {\n    unicode_xid::UnicodeXID::is_xid_start(c)\n}\n' >>src/lib.rs
    mkdir -p tests && printf '#[test]\nfn real() {\n    assert!("a".chars().all(walkdir::real));\n}\n' >tests/dependency.rs
}
