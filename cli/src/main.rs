//! `plumb`, the command line.

fn main() -> std::process::ExitCode {
    plumbline_cli::main()
}
