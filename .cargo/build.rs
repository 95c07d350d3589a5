//! The build script: a debug binary that is started thousands of times by the tests starts in half
//! the time when it is linked for a fixed address.

#![expect(clippy::disallowed_methods, reason = "cargo speaks to a build script by its environment")]

fn main() {
    println!("cargo::rerun-if-changed=.cargo/build.rs");
    let is = |name: &str, value: &str| std::env::var(name).is_ok_and(|it| it == value);
    if is("PROFILE", "debug") && is("CARGO_CFG_TARGET_OS", "linux") && is("CARGO_CFG_TARGET_ENV", "gnu") {
        println!("cargo::rustc-link-arg-bins=-no-pie");
    }
}
