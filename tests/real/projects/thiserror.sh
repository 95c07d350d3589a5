stack='Rust, workspace, proc macro, build script'
repository=dtolnay/thiserror
commit=aa9d91f75302025e0c1d4c535d84a5bfdad62508
install() { cargo fetch -q; }
check() { cargo test -q; }
honest() {
    printf '\n// more\n' >>src/lib.rs
    printf '#[test]\nfn real() {}\n' >tests/real.rs
}
broken() { sed -i '/fn source(/,/}/s/#body/::core::option::Option::None/' impl/src/expand.rs; }
dependency() {
    cargo add -q unicode-xid@0.2
    printf '\n/// Whether a name may begin with it.\n#[must_use]\npub fn real(c: char) -> bool {\n    unicode_xid::UnicodeXID::is_xid_start(c)\n}\n' >>src/lib.rs
    printf '#[test]\nfn real() {\n    assert!("a".chars().all(thiserror::real));\n}\n' >tests/dependency.rs
}
