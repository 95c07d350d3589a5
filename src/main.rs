//! The program: whatever [`fledge::cli::main`] says.

fn main() -> std::process::ExitCode {
    fledge::cli::main()
}
