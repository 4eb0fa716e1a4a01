//! Texts that do not depend on a server: help and wrong arguments, word for word.

#[test]
fn texts_are_as_written_down() {
    trycmd::TestCases::new().case("tests/cmd/*.trycmd");
}
