//! The fledge program.

fn main() -> std::process::ExitCode {
    fledge::cli::main()
}
