//! Every kind of mistake, as the user sees it: the text is a snapshot.

use sinew_gen::Builder;

fn report(protos: &[&str]) -> String {
    let protos: Vec<String> = protos
        .iter()
        .map(|name| format!("tests/mistakes/{name}.proto"))
        .collect();
    match Builder::new().protos(&protos).generate() {
        Ok(_) => panic!("{protos:?} must not be accepted"),
        Err(report) => report.to_string().replace('\\', "/"),
    }
}

macro_rules! snapshots {
    ($($name:ident: $($proto:literal)*;)*) => {
        $(#[test] fn $name() {
            insta::assert_snapshot!(report(&[$($proto),*]));
        })*
    };
}

snapshots! {
    mistakes_of_several_files_are_shown_at_once: "syntax" "types" "unknown" "bounds";
    a_field_without_a_bound_is_shown_with_its_line: "bounds";
    an_options_file_is_checked_line_by_line: "options";
    an_id_that_is_zero_or_taken_is_refused: "ids";
    names_that_clash_in_rust_are_refused: "names" "variants";
    names_that_rust_cannot_take_are_refused: "hostile";
    a_message_that_contains_itself_is_refused: "endless";
    a_group_is_refused: "group";
    a_missing_file_is_named: "absent";
}

#[test]
fn a_run_without_files_is_a_mistake() {
    let report = Builder::new().generate().expect_err("nothing to do");
    assert_eq!(report.mistakes[0].message, "no .proto file is given");
}

#[test]
fn a_missing_options_file_is_to_be_created() {
    let folder = tempfile::tempdir().expect("a folder");
    let proto = folder.path().join("lamp.proto");
    let text = "syntax = \"proto3\"; package lamp; message Name { string text = 1; } \
                service Lamp { rpc Rename(Name) returns (Name); }";
    std::fs::write(&proto, text).expect("a file");
    let report = Builder::new().protos(&[&proto]).generate();
    let report = report.expect_err("no bound").to_string();
    let remedy = format!(
        "create {} with the line `lamp.Name.text max_size:N` (N in bytes)",
        folder.path().join("lamp.options").display()
    );
    assert!(report.contains(&remedy), "{report}");
}

#[test]
fn an_options_file_for_all_is_read_and_must_exist() {
    let run = Builder::new().protos(&["tests/mistakes/bounds.proto"]);
    let report = run.clone().options("tests/mistakes/absent.options");
    let report = report.generate().expect_err("no such file").to_string();
    assert!(report.contains("absent.options"), "{report}");

    let folder = tempfile::tempdir().expect("a folder");
    let all = folder.path().join("all.options");
    std::fs::write(&all, "* default_max_size:4 default_max_count:4").expect("a file");
    let text = run
        .options(&all)
        .generate()
        .unwrap_or_else(|report| panic!("{report}"));
    assert!(text.contains("heapless::String<4>"));
}
