//! Names that Rust, its prelude, or the generated code use, too: what was made of them compiles,
//! and means what it says.

use sinew::rpc::{CallError, Cx, Decode, Direct, Encode, Responder, Stop};

use sinew_generated::hostile as generated;

use generated::tests::{hostile, hostile_services};

#[test]
fn messages_named_like_the_prelude_round_trip() {
    let message = hostile::Result {
        option: Some(hostile::Option {
            result: None,
            default: Some(hostile::Default {
                clone: Some(hostile::Clone::default()),
                ..Default::default()
            }),
        }),
        some: [hostile::Some::Some, hostile::Some::None]
            .into_iter()
            .collect(),
        none: Some(hostile::None {}),
    };
    let mut bytes = [0; hostile::Result::MAX_LEN];
    let len = message.encode(&mut bytes).expect("room for every message");
    assert_eq!(len, message.encoded_len());
    assert_eq!(hostile::Result::decode(&bytes[..len]), Some(message));
}

/// Serves `S/S`, and `Into/Into` beside the prelude's.
struct Mine;

impl hostile_services::into::IntoService for Mine {
    fn into_(
        &mut self,
        request: &hostile::Into,
        _: Cx<'_, Responder<hostile::Into>>,
    ) -> Result<hostile::Into, Stop> {
        Ok(*request)
    }
}

#[test]
fn a_service_named_like_a_trait_of_the_prelude_can_be_called() -> Result<(), CallError> {
    let mut mine = Mine;
    let mut client = hostile_services::into::Client(Direct(&mut mine));
    assert_eq!(client.into_(&hostile::Into {})?, hostile::Into {});
    Ok(())
}

#[test]
fn a_byte_order_mark_is_no_part_of_a_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).expect("a file");
        path
    };
    let text = "syntax = \"proto3\";\npackage p;\nmessage M { string s = 1; }\n";
    let run = |proto| sinew_gen::Builder::new().protos(&[proto]).generate();

    write("m.options", "\u{feff}p.M.s max_size:4");
    let plain = run(write("m.proto", text)).unwrap_or_else(|report| panic!("{report}"));
    let marked = run(write("m.proto", &format!("\u{feff}{text}")));
    assert_eq!(marked, Ok(plain));

    // A mistake is shown at its place.
    let marked = write("n.proto", &format!("\u{feff}{text}"));
    let report = run(marked).expect_err("a field without a bound");
    let mistake = &report.mistakes[0];
    assert_eq!((mistake.line, mistake.column), (3, 20));
    assert_eq!(mistake.source_line, "message M { string s = 1; }");
    let marked = write("n.proto", "\u{feff}syntax = \"proto3\"; ?");
    let report = run(marked).expect_err("a syntax error");
    assert_eq!(
        (report.mistakes[0].line, report.mistakes[0].column),
        (1, 20)
    );
}
