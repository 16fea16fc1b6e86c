//! Tests what a `vmhost` without the feature `dev` says about the missing commands. With the
//! feature this test is empty, since the suite in `tests` runs that program.
#![cfg(not(feature = "dev"))]

use std::process::Command;

const AUTHORS: [&str; 6] = ["dev", "new", "build", "test", "types", "doctor"];

#[test]
fn what_is_left_out_is_not_offered_and_refused() {
    let vmhost = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_vmhost"));
        let output = command.args(args).output().unwrap();
        let text = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8(text).unwrap())
    };
    let (_, help) = vmhost(&["--help"]);
    let is_offered = |command: &str| {
        let first = |line: &str| line.split_whitespace().next() == Some(command);
        help.lines().any(first)
    };
    assert!(is_offered("status") && is_offered("rbac"), "{help}");
    for command in AUTHORS {
        assert!(!is_offered(command), "{command} is offered: {help}");
        let (succeeded, text) = vmhost(&[command, "x", "--lang", "go"]);
        assert!(!succeeded, "{command}: {text}");
        for word in ["without the feature `dev`", command] {
            assert!(text.contains(word), "{command}: {text}");
        }
    }
    let folder = env!("CARGO_MANIFEST_DIR");
    // Another vmhost may listen on the default ports.
    let addresses = ["metrics", "health-probe", "admin"].map(|of| format!("--{of}-bind-address=0"));
    let mut start = vec!["--plugin", folder];
    start.extend(addresses.iter().map(String::as_str));
    let (succeeded, text) = vmhost(&start);
    assert!(
        !succeeded && text.contains("without the feature `dev`"),
        "{text}"
    );
    assert!(text.contains(folder), "{text}");
}
