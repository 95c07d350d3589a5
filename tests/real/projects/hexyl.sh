stack='Rust, a program with a lock file'
repository=sharkdp/hexyl
commit=8eb6d4771ce1ec7af65d06bd335457783b77d557
install() { cargo fetch -q; }
check() { cargo test -q; }
honest() {
    printf '\n// more\n' >>src/colors.rs
    printf '#[test]\nfn real() {}\n' >tests/real.rs
}
broken() { sed -i 's/{i:02x}/{i:02X}/' src/lib.rs; }
dependency() {
    cargo add -q unicode-xid@0.2
    printf '\n/// Whether a name may begin with it.\npub fn real(c: char) -> bool {\n    unicode_xid::UnicodeXID::is_xid_start(c)\n}\n' >>src/lib.rs
    printf '#[test]\nfn real() {\n    assert!("a".chars().all(hexyl::real));\n}\n' >tests/dependency.rs
}
