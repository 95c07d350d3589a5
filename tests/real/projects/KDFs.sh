stack='Rust, workspace with git dependencies'
repository=RustCrypto/KDFs
commit=e519f5a936c6c06194d491a664f8f6a9f3eb292b
install() { cargo fetch -q --locked; }
check() { cargo test -q; }
honest() {
    printf '\n// more\n' >>hkdf/src/errors.rs
    printf '#[test]\nfn real() {}\n' >hkdf/tests/real.rs
}
broken() { sed -i 's/block_n as u8 + 1/block_n as u8 + 2/' hkdf/src/lib.rs; }
dependency() {
    cargo add -q -p hkdf unicode-xid@0.2
    printf '\n/// Whether a name may begin with it.\npub fn real(c: char) -> bool {\n    unicode_xid::UnicodeXID::is_xid_start(c)\n}\n' >>hkdf/src/lib.rs
    printf '#[test]\nfn real() {\n    assert!("a".chars().all(hkdf::real));\n}\n' >hkdf/tests/dependency.rs
}
