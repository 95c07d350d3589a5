stack='Rust, no lock file'
repository=dtolnay/itoa
commit=1577ed901354d0d7448ac162328f9dbf5183124c
package='crates.io itoa 1.0.15'
install() { cargo fetch -q; }
check() { cargo test -q; }
honest() {
    printf '\n// more\n' >>src/lib.rs
    printf '#[test]\nfn real() {}\n' >tests/real.rs
}
broken() { sed -i "s/b'-'/b'+'/" src/lib.rs; }
dependency() {
    cargo add -q unicode-xid@0.2
    printf '\n/// Whether a name may begin with it.\npub fn real(c: char) -> bool {\n    unicode_xid::UnicodeXID::is_xid_start(c)\n}\n' >>src/lib.rs
    printf '#[test]\nfn real() {\n    assert!("a".chars().all(itoa::real));\n}\n' >tests/dependency.rs
}
