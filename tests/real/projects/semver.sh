stack='Rust, build script'
repository=dtolnay/semver
commit=8591f2344b52b31d85b538de58b76a676fe9ff90
package='crates.io semver 1.0.26'
install() { cargo fetch -q; }
check() { cargo test -q; }
honest() {
    printf '\n// more\n' >>src/lib.rs
    printf '#[test]\nfn real() {}\n' >tests/real.rs
}
broken() { sed -i 's/if ver.major != cmp.major {/if ver.major == cmp.major {/' src/eval.rs; }
dependency() {
    cargo add -q unicode-xid@0.2
    printf '\n/// Whether a name may begin with it.\npub fn real(c: char) -> bool {\n    unicode_xid::UnicodeXID::is_xid_start(c)\n}\n' >>src/lib.rs
    printf '#[test]\nfn real() {\n    assert!("a".chars().all(semver::real));\n}\n' >tests/dependency.rs
}
