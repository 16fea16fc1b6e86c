//! The host under test: the code of the shipped binary, built with the tests, so that Cargo tells
//! them its path.

fn main() -> std::process::ExitCode {
    vmhost::main()
}
