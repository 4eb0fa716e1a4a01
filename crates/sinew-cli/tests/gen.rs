//! `sinew gen`: writes, checks, and shows every mistake.

mod support;

use std::fs;
use std::path::PathBuf;

use support::{answer, complaint, sinew};

const PROTO: &str = "syntax = \"proto3\";\npackage t;\nmessage M { uint32 n = 1; }\n\
                     service S { rpc Get(M) returns (M); }\n";

/// A folder with this file t.proto, empty otherwise.
fn folder(name: &str, proto: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("t.proto"), proto).unwrap();
    folder
}

fn generate(folder: &PathBuf, more: &[&str]) -> std::process::Output {
    let mut command = sinew(&["gen", "t.proto", "--out", "made"]);
    command.args(more).current_dir(folder).output().unwrap()
}

#[test]
fn what_is_written_is_not_stale_until_the_proto_changes() {
    let folder = folder("gen-stale", PROTO);
    let missing = generate(&folder, &["--check"]);
    assert_eq!(missing.status.code(), Some(1));
    assert!(complaint(&missing).contains("made/t.rs, which does not exist"));
    assert!(!folder.join("made").exists());

    assert_eq!(answer(&generate(&folder, &[])), "made/t.rs\n");
    assert!(
        fs::read_to_string(folder.join("made/t.rs"))
            .unwrap()
            .contains("pub trait S")
    );
    assert_eq!(answer(&generate(&folder, &["--check"])), "");

    fs::write(folder.join("t.proto"), PROTO.replace("uint32 n", "int32 n")).unwrap();
    let changed = generate(&folder, &["--check"]);
    assert_eq!(changed.status.code(), Some(1));
    assert!(
        complaint(&changed).contains("made/t.rs, from line"),
        "{}",
        complaint(&changed)
    );
}

#[test]
fn all_mistakes_are_shown_at_once_with_their_lines() {
    let text = "syntax = \"proto3\";\npackage t;\nmessage M {\n  string a = 1;\n  repeated int32 b = 2;\n}\n\
                service S { rpc Get(M) returns (M); }\n";
    let folder = folder("gen-mistakes", text);
    let output = generate(&folder, &[]);
    let shown = complaint(&output);
    assert!(
        shown.contains("t.proto:4:") && shown.contains("string a = 1;"),
        "{shown}"
    );
    assert!(
        shown.contains("t.proto:5:") && shown.contains("repeated int32 b = 2;"),
        "{shown}"
    );
    assert_eq!(output.status.code(), Some(64));
    assert!(!folder.join("made").exists());
}

#[test]
fn bounds_may_come_from_an_options_file() {
    let text = "syntax = \"proto3\";\npackage t;\nmessage M { string a = 1; }\n\
                service S { rpc Get(M) returns (M); }\n";
    let folder = folder("gen-options", text);
    fs::write(folder.join("bounds"), "t.M.a max_size:16\n").unwrap();
    assert_eq!(
        answer(&generate(&folder, &["--options", "bounds"])),
        "made/t.rs\n"
    );
}
