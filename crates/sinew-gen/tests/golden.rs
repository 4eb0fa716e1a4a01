//! The code generated from demo.proto is checked in, to be read and reviewed, and is what the
//! generator makes now.
//!
//! `SINEW_GEN_UPDATE=1 cargo test -p sinew-gen --test golden` writes it anew.

use std::path::Path;
use std::process::Command;

use sinew_gen::Builder;

const FOLDER: &str = "tests/golden";

/// The run whose output is checked in.
fn demo() -> Builder {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    Builder::new()
        .protos(&[here.join("../../proto/demo/demo.proto")])
        .mocks(true)
}

/// Hard .proto files as well; `tests/generated` compiles what is made of them.
fn runs() -> Vec<Builder> {
    let protos = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/generated/protos");
    let run = |proto: &str| Builder::new().protos(&[protos.join(proto)]).mocks(true);
    vec![
        demo(),
        run("features.proto").schema(true),
        run("versions.proto"),
        run("rootless.proto"),
        run("hostile.proto").protos(&[protos.join("hostile_services.proto")]),
    ]
}

#[test]
fn generated_code_is_up_to_date() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(FOLDER);
    if std::env::var_os("SINEW_GEN_UPDATE").is_some() {
        demo()
            .generate_to(&folder)
            .unwrap_or_else(|report| panic!("{report}"));
    }
    let stale = demo()
        .check(&folder)
        .unwrap_or_else(|report| panic!("{report}"));
    assert_eq!(stale, []);
}

#[test]
fn a_second_run_changes_nothing() {
    for run in runs() {
        assert_eq!(run.generate(), run.generate());
    }
}

#[test]
fn rustfmt_leaves_generated_code_as_it_is() {
    let folder = tempfile::tempdir().expect("a folder");
    for run in runs() {
        let path = run
            .generate_to(folder.path())
            .unwrap_or_else(|report| panic!("{report}"));
        for width in ["60", "100"] {
            let status = Command::new("rustfmt")
                .args(["--edition", "2024", "--check", "--config"])
                .arg(format!("max_width={width}"))
                .arg(&path)
                .status()
                .expect("rustfmt must be installed: rustup component add rustfmt");
            assert!(status.success(), "{}", path.display());
        }
    }
}

#[test]
fn a_missing_and_a_changed_file_are_stale() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = demo();
    let stale = run.check(folder.path()).expect("a good .proto");
    assert_eq!((stale.len(), stale[0].line), (1, None));

    let path = run.generate_to(folder.path()).expect("a good .proto");
    assert_eq!(run.check(folder.path()).expect("a good .proto"), []);

    let text = std::fs::read_to_string(&path).expect("what was written");
    std::fs::write(&path, text.replacen("SetValue", "PutValue", 1)).expect("a file");
    let stale = run.check(folder.path()).expect("a good .proto");
    assert!(stale[0].line.is_some_and(|line| line > 2));
}
