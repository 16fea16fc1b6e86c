//! The `vmhost` command.

fn main() -> std::process::ExitCode {
    vmhost::main()
}
