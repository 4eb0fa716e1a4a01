//! A line of bash up to the cursor, and words as they stand in one.

/// Words, the last of which is under the cursor.
#[derive(Debug)]
pub struct Line {
    before: Vec<String>,
    pub last: Word,
}

/// A word that is not finished.
#[derive(Clone, Debug, Default)]
pub struct Word {
    /// What it means.
    text: String,
    /// As it is written.
    raw: String,
    /// The quotation mark that is open.
    open: Option<char>,
    /// Bytes of the text before the part that bash completes.
    kept: usize,
}

impl Line {
    /// Splits it as bash does. In `breaks` are the characters behind which bash begins a new part of a word.
    pub fn split(text: &str, breaks: &str) -> Line {
        let (mut before, mut word) = (Vec::new(), Word::default());
        let mut chars = text.chars();
        while let Some(char) = chars.next() {
            let raw = |word: &mut Word| word.raw.push(char);
            match (word.open, char) {
                (None, ' ' | '\t' | '\n') => {
                    if !word.raw.is_empty() {
                        before.push(std::mem::take(&mut word).text);
                    }
                }
                (None, '\'' | '"') => {
                    raw(&mut word);
                    word.open = Some(char);
                }
                (Some(open), _) if char == open => {
                    raw(&mut word);
                    word.open = None;
                }
                (None | Some('"'), '\\') => {
                    raw(&mut word);
                    let next = chars.next();
                    word.raw.extend(next);
                    let is_kept = word.open.is_some()
                        && next.is_some_and(|next| !matches!(next, '"' | '\\' | '$' | '`'));
                    word.text.extend(is_kept.then_some('\\'));
                    word.text.extend(next);
                }
                _ => {
                    raw(&mut word);
                    word.text.push(char);
                    if word.open.is_none() && breaks.contains(char) {
                        word.kept = word.text.len();
                    }
                }
            }
        }
        Line { before, last: word }
    }

    /// All of them, as a program gets them.
    pub fn words(&self) -> Vec<String> {
        let last = std::iter::once(&self.last.text);
        self.before.iter().chain(last).cloned().collect()
    }
}

/// Characters that mean themselves to bash.
fn is_plain(char: char) -> bool {
    char.is_alphanumeric() || "%+,-./:=@_~".contains(char)
}

impl Word {
    /// What bash is to write in place of the part that it completes, so that the word becomes `value`; `None`
    /// where that cannot be written behind what stands there.
    pub fn completed(&self, value: &str) -> Option<String> {
        value.strip_prefix(self.text.as_str())?;
        if let Some(open) = self.open {
            // Bash takes what stands behind the mark, and closes it.
            let is_first = self.raw.starts_with(open);
            let ends = |char| match open {
                '\'' => char == '\'',
                _ => "\"$`\\!".contains(char),
            };
            return (is_first && !value.contains(ends)).then(|| value.into());
        }
        let rest = value.get(self.kept..)?;
        if self.raw.is_empty() && !rest.chars().all(is_plain) {
            return Some(format!("'{}'", rest.replace('\'', "'\\''")));
        }
        let mut quoted = String::new();
        for char in rest.chars() {
            if !is_plain(char) {
                quoted.push('\\');
            }
            quoted.push(char);
        }
        Some(quoted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What bash has by itself.
    const BREAKS: &str = " \t\n\"'@><=;|&(:";

    fn split(line: &str) -> Line {
        Line::split(line, BREAKS)
    }

    #[test]
    fn words_are_those_that_a_program_gets() {
        let line = split(r#"sinew  call 'exec:a b' "x\"y\z" c\ d "#);
        let words = ["sinew", "call", "exec:a b", "x\"y\\z", "c d", ""];
        assert_eq!(line.words(), words);
        assert_eq!(split("sinew call 'exec:a b").words()[2], "exec:a b");
    }

    #[test]
    fn only_what_stands_behind_the_last_break_is_written() {
        let word = split("sinew call tcp:127.0.0.1:33").last;
        assert_eq!(word.completed("tcp:127.0.0.1:33000").unwrap(), "33000");
        assert_eq!(word.completed("udp:x"), None);
        let word = split("sinew call unix:/tmp/a").last;
        assert_eq!(
            word.completed("unix:/tmp/a $(b)").unwrap(),
            r"/tmp/a\ \$\(b\)"
        );
    }

    #[test]
    fn what_bash_would_read_otherwise_is_quoted() {
        let word = split("sinew call x y ").last;
        assert_eq!(word.completed(r#"{"n":0}"#).unwrap(), r#"'{"n":0}'"#);
        assert_eq!(word.completed("a'b").unwrap(), r"'a'\''b'");
        assert_eq!(word.completed("demo.Kinds/Sum").unwrap(), "demo.Kinds/Sum");
    }

    #[test]
    fn open_quotation_mark_holds_what_it_can() {
        let word = split("sinew call x y '{").last;
        assert_eq!(word.completed(r#"{"n":0}"#).unwrap(), r#"{"n":0}"#);
        assert_eq!(word.completed("{it's}"), None);
        let word = split("sinew call x y \"{").last;
        assert_eq!(word.completed(r#"{"n":0}"#), None);
    }
}
