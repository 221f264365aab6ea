//! `plumb` for the tests, which drive it as a process.

fn main() -> std::process::ExitCode {
    plumbline_cli::main()
}
