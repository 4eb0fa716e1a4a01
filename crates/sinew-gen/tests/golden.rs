//! The generated code that the tests use is checked in, and is what the generator makes now.
//!
//! `SINEW_GEN_UPDATE=1 cargo test -p sinew-gen --test golden` writes it anew.

use std::path::Path;
use std::process::Command;

use sinew_gen::Builder;

const FOLDER: &str = "tests/golden";

fn runs() -> Vec<Builder> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let run = |proto: &str| Builder::new().protos(&[here.join(proto)]);
    vec![
        run("../../proto/demo/demo.proto").mocks(true),
        run("tests/protos/features.proto")
            .descriptors(true)
            .mocks(true),
        run("tests/protos/versions.proto"),
        run("tests/protos/rootless.proto"),
        run("tests/protos/hostile.proto")
            .protos(&[here.join("tests/protos/hostile_services.proto")])
            .mocks(true),
    ]
}

#[test]
fn generated_code_is_up_to_date() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(FOLDER);
    for run in runs() {
        if std::env::var_os("SINEW_GEN_UPDATE").is_some() {
            run.generate_to(&folder)
                .unwrap_or_else(|report| panic!("{report}"));
        }
        let stale = run
            .check(&folder)
            .unwrap_or_else(|report| panic!("{report}"));
        assert_eq!(stale, []);
    }
}

#[test]
fn a_second_run_changes_nothing() {
    for run in runs() {
        assert_eq!(run.generate(), run.generate());
    }
}

#[test]
fn rustfmt_leaves_generated_code_as_it_is() {
    for run in runs() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join(FOLDER)
            .join(run.file_name());
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
    let run = &runs()[0];
    let stale = run.check(folder.path()).expect("a good .proto");
    assert_eq!((stale.len(), stale[0].line), (1, None));

    let path = run.generate_to(folder.path()).expect("a good .proto");
    assert_eq!(run.check(folder.path()).expect("a good .proto"), []);

    let text = std::fs::read_to_string(&path).expect("what was written");
    std::fs::write(&path, text.replacen("SetValue", "PutValue", 1)).expect("a file");
    let stale = run.check(folder.path()).expect("a good .proto");
    assert!(stale[0].line.is_some_and(|line| line > 2));
}
