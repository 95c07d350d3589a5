stack='Rust, proc macro, no lock file'
repository=matklad/xshell
commit=52f71bac326aaac291d07146ea790ad886dd8131
install() { cargo fetch -q; }
check() { cargo test -q; }
honest() {
    printf '\n// more\n' >>src/error.rs
    printf '#[test]\nfn real() {}\n' >tests/real.rs
}
broken() { sed -i 's/command exited with non-zero code/command exited/' src/error.rs; }
dependency() {
    cargo add -q unicode-xid@0.2
    printf '\n/// Whether a name may begin with it.\npub fn real(c: char) -> bool {\n    unicode_xid::UnicodeXID::is_xid_start(c)\n}\n' >>src/lib.rs
    printf '#[test]\nfn real() {\n    assert!("a".chars().all(xshell::real));\n}\n' >tests/dependency.rs
}
