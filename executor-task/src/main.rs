//! The program inside an ECS task or a local child process. See the library.

fn main() -> std::process::ExitCode {
    plumbline_executor::main()
}
