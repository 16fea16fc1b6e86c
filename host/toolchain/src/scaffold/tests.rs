//! Creates a project in each language, and refuses invalid arguments.

use super::*;

fn project(language: Language) -> Project<'static> {
    Project {
        name: "my-controller",
        language,
        kind: "Policy",
        group: "example.com",
        version: "v1beta1",
    }
}

/// Returns all files below a folder, by path.
fn files(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut files = Vec::new();
    let mut pending = vec![folder.to_owned()];
    while let Some(next) = pending.pop() {
        for entry in fs::read_dir(next).unwrap().flatten() {
            let path = entry.path();
            if path.is_dir() {
                pending.push(path);
            } else {
                let name = path.strip_prefix(folder).unwrap().display().to_string();
                files.push((name, fs::read(&path).unwrap()));
            }
        }
    }
    files.sort();
    files
}

#[test]
fn each_language_gets_a_project_with_nothing_left_to_fill_in() {
    for language in Language::ALL {
        let parent = tempfile::tempdir().unwrap();
        let project = project(language);
        let folder = project.write(parent.path()).unwrap();
        assert_eq!(folder, parent.path().join("my-controller"));
        assert_eq!(Language::of(&folder).unwrap(), language);
        let files = files(&folder);
        for (path, bytes) in &files {
            assert!(!path.ends_with(TEMPLATE), "{language}: {path}");
            if path.starts_with("sdk/") {
                continue;
            }
            let text = String::from_utf8_lossy(bytes);
            for (placeholder, _) in project.placeholders() {
                assert!(!path.contains(placeholder), "{language}: {path}");
                assert!(
                    !text.contains(placeholder),
                    "{language}: {path} has {placeholder}"
                );
            }
            assert!(
                !path.contains("__") || path.contains("__init__"),
                "{language}: {path}"
            );
        }
        for wanted in [
            "README.md",
            "manifests/crd.yaml",
            "manifests/example.yaml",
            "cases/greets/object.json",
            ".gitignore",
        ] {
            assert!(
                files.iter().any(|(path, _)| path == wanted),
                "{language} has no {wanted}"
            );
        }
        assert!(
            files.iter().any(|(path, _)| path.starts_with("sdk/")),
            "{language} has no SDK"
        );
        let any = |text: &str| {
            files.iter().any(|(path, bytes)| {
                !path.starts_with("sdk/") && String::from_utf8_lossy(bytes).contains(text)
            })
        };
        assert!(
            any("example.com") && any("Policy") && any("hello, "),
            "{language}"
        );
    }
}

#[test]
fn the_definition_and_the_cases_are_of_the_kind() {
    let parent = tempfile::tempdir().unwrap();
    let folder = project(Language::Rust).write(parent.path()).unwrap();
    let crd = fs::read_to_string(folder.join("manifests/crd.yaml")).unwrap();
    for line in [
        "  name: policies.example.com",
        "    kind: Policy",
        "    listKind: PolicyList",
        "    plural: policies",
        "    singular: policy",
        "    - name: v1beta1",
        "        status: {}",
    ] {
        assert!(crd.lines().any(|found| found == line), "{line}\n{crd}");
    }
    for case in ["greets", "default-who", "already-said"] {
        let text = fs::read(folder.join("cases").join(case).join("object.json")).unwrap();
        let object: serde_json::Value = serde_json::from_slice(&text).unwrap();
        assert_eq!(object["apiVersion"], "example.com/v1beta1");
        assert_eq!(object["kind"], "Policy");
        assert_eq!(object["metadata"]["name"], case);
        assert_eq!(
            object.pointer("/status/message").is_some(),
            case == "already-said"
        );
    }
}

#[test]
fn a_webhook_has_its_own_policy_and_cases_in_each_language() {
    for language in Language::ALL {
        let parent = tempfile::tempdir().unwrap();
        let folder = project(language).write_webhook(parent.path()).unwrap();
        assert_eq!(Language::of(&folder).unwrap(), language);
        let files = files(&folder);
        let names: Vec<&str> = files.iter().map(|(path, _)| path.as_str()).collect();
        for wanted in [
            "README.md",
            ".gitignore",
            "manifests/crd.yaml",
            "manifests/example.yaml",
            "cases/names-nobody/admission.json",
            "cases/names-somebody/expect.json",
        ] {
            assert!(names.contains(&wanted), "{language}: {names:?}");
        }
        let own = files.iter().filter(|(path, _)| !path.starts_with("sdk/"));
        let mut policy_and_tests = 0;
        for (path, bytes) in own {
            let text = String::from_utf8_lossy(bytes);
            // What the template for a controller says is left nowhere.
            let placeholders = project(language).placeholders();
            let placeholders = placeholders.iter().map(|(placeholder, _)| *placeholder);
            for word in placeholders.chain(["hello", "greet"]) {
                assert!(!text.contains(word), "{language}: {path} says {word}");
            }
            let is_code = !path.contains("cases/") && !path.ends_with(".md");
            let refuses = text.contains("spec.who must name somebody");
            policy_and_tests += usize::from(is_code && refuses);
        }
        // Rust has both in one file.
        let files = if language == Language::Rust { 1 } else { 2 };
        assert_eq!(policy_and_tests, files, "{language}");
    }
}

#[test]
fn the_rust_project_is_built_by_the_same_rust_as_this_one() {
    let parent = tempfile::tempdir().unwrap();
    let folder = project(Language::Rust).write(parent.path()).unwrap();
    let toolchain = fs::read_to_string(folder.join("rust-toolchain.toml")).unwrap();
    assert_eq!(toolchain, include_str!("../../../../rust-toolchain.toml"));
    let manifest = fs::read_to_string(folder.join("Cargo.toml")).unwrap();
    assert!(
        manifest.contains("vmhost-plugin = { path = \"sdk\" }"),
        "{manifest}"
    );
}

#[test]
fn a_flag_that_cannot_be_is_named() {
    let good = project(Language::Rust);
    let refused = |project: Project<'_>| {
        let parent = tempfile::tempdir().unwrap();
        let error = project.write(parent.path()).unwrap_err().to_string();
        assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 0, "{error}");
        error
    };
    for name in [
        "",
        "My",
        "a_b",
        "-a",
        "a-",
        "1a",
        "a.b",
        "../a",
        &"a".repeat(64),
    ] {
        let error = refused(Project {
            name,
            ..good.clone()
        });
        assert!(
            error.starts_with(&format!("NAME {name:?} is not a DNS label")),
            "{error}"
        );
    }
    assert_eq!(
        refused(Project {
            name: "class",
            ..good.clone()
        }),
        "NAME \"class\" is a reserved word; choose another name"
    );
    let python = project(Language::Python);
    assert_eq!(
        refused(Project {
            name: "calendar",
            ..python
        }),
        "NAME \"calendar\" is the name of a Python standard library or SDK module; choose another name"
    );
    for kind in ["", "policy", "My-Kind", "9Lives", "Äpfel", &"K".repeat(61)] {
        let error = refused(Project {
            kind,
            ..good.clone()
        });
        assert!(
            error.starts_with(&format!("--kind {kind:?} is not a kind")),
            "{error}"
        );
    }
    for group in ["", "example", "Example.com", "a..b", ".com", "a.b."] {
        let error = refused(Project {
            group,
            ..good.clone()
        });
        assert!(
            error.starts_with(&format!("--group {group:?} is not a group")),
            "{error}"
        );
    }
    for group in ["k8s.io", "x.kubernetes.io"] {
        let error = refused(Project {
            group,
            ..good.clone()
        });
        assert!(error.contains("belongs to Kubernetes"), "{error}");
    }
    for version in [
        "", "1", "v0", "v1.0", "v1gamma1", "v1alpha", "valpha1", "V1",
    ] {
        let error = refused(Project {
            version,
            ..good.clone()
        });
        assert_eq!(
            error,
            format!(
                "--api-version {version:?} is not an API version such as v1, v1alpha1 or v2beta3"
            )
        );
    }
}

#[test]
fn nothing_is_overwritten() {
    let parent = tempfile::tempdir().unwrap();
    let folder = parent.path().join("my-controller");
    fs::create_dir(&folder).unwrap();
    // An existing empty folder is accepted.
    project(Language::Rust).write(parent.path()).unwrap();
    let error = project(Language::Rust).write(parent.path()).unwrap_err();
    assert_eq!(
        error.to_string(),
        format!(
            "NAME {}: the folder exists and is not empty",
            folder.display()
        )
    );
    let file = parent.path().join("a-file");
    fs::write(&file, "").unwrap();
    let taken = Project {
        name: "a-file",
        ..project(Language::Rust)
    };
    assert!(matches!(
        taken.write(parent.path()),
        Err(Error::NotEmpty(_))
    ));
}

#[test]
fn a_plural_is_guessed_as_kubernetes_does() {
    for (singular, guess) in [
        ("foo", "foos"),
        ("policy", "policies"),
        ("class", "classes"),
        ("box", "boxs"),
    ] {
        assert_eq!(plural(singular), guess);
    }
}
