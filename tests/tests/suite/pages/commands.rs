//! The commands that pages may print: those of vmhost, and those of other programs with what runs
//! them.

/// The subcommands of vmhost.
pub const SUBCOMMANDS: [&str; 34] = [
    "apiserver",
    "audit",
    "build",
    "canary abort",
    "canary promote",
    "canary start",
    "canary status",
    "dev",
    "doctor",
    "envtest",
    "finalizers",
    "history",
    "inspect",
    "install",
    "new",
    "package",
    "preview",
    "pull",
    "push",
    "rbac",
    "record",
    "replay",
    "rollback",
    "shadow start",
    "shadow status",
    "shadow stop",
    "sign",
    "status",
    "test",
    "turns",
    "types",
    "verify",
    "webhooks",
    "why",
];

/// Commands of other programs, each with a file and words in that file. The file runs the command,
/// or compiles or installs the command's subject, or is a page that says that no test runs the
/// command.
pub const OTHERS: [(&str, &str, &str); 22] = [
    (".ci/release", "tests/tests/suite/release.rs", ".ci/release"),
    (
        "cargo bench --profile dev",
        ".ci/run",
        "cargo bench --profile dev",
    ),
    (
        "cargo bench --profile profiling",
        ".ci/run",
        "--benches --no-run",
    ),
    (
        "cargo build --profile dist",
        "tests/race/src/make.rs",
        "\"dist\"",
    ),
    (
        "cargo run --release -p vmhost-race",
        "Cargo.toml",
        "\"tests/race\"",
    ),
    ("cargo test --workspace", ".ci/run", "test --workspace"),
    ("cargo test -p vmhost-tests", ".ci/run", "test --workspace"),
    (
        "helm install",
        "tests/tests/suite/chart.rs",
        "[\"install\"]",
    ),
    (
        "helm uninstall",
        "tests/tests/suite/chart.rs",
        "\"uninstall\"",
    ),
    (
        "host/package/image",
        "tests/src/pod.rs",
        "host/package/image",
    ),
    (
        "host/package/kustomize",
        "tests/tests/suite/chart.rs",
        "host/package/kustomize",
    ),
    ("go test ./...", SDKS, "&[\"test\", \"./...\"]"),
    (
        "make -C plugins/",
        SDKS,
        "\"make\", &[\"--silent\", \"test\"]",
    ),
    ("mypy .", SDKS, "\"mypy\""),
    ("npm install", ".ci/run", "npm install"),
    ("npm run build", ASSEMBLYSCRIPT, "no test runs npm here"),
    ("npm test", SDKS, "\"npm\", &[\"test\"]"),
    (
        ".venv/bin/pip install componentize-py==0.25.1",
        ".ci/run",
        "componentize-py==0.25.1",
    ),
    ("python3 -m", SDKS, "&[\"-m\", \"unittest\"]"),
    (
        "wasm-tools component",
        "wit/OTHER-LANGUAGES.md",
        "No test runs these two commands",
    ),
    (
        "wit-bindgen c wit/v1 --world plugin",
        SDKS,
        "\"wit-bindgen\"",
    ),
    ("zig test", SDKS, "\"zig\""),
];

const SDKS: &str = "tests/tests/suite/sdks.rs";
const ASSEMBLYSCRIPT: &str = "examples/other-assemblyscript/README.md";
