//! What each shell says, and how it takes the answer.
//!
//! | shell | says | takes |
//! |---|---|---|
//! | bash | the line up to the cursor, and where it breaks words | what stands behind the last break, quoted |
//! | zsh, fish | the words | the word, a tab, its description; both quote by themselves |

use super::Shell;
use super::line::{Line, Word};

/// What is to be completed.
pub struct Asked {
    /// The last one is to be completed.
    pub words: Vec<String>,
    /// Where bash breaks words; `None`: the shell quotes.
    unquoted: Option<Word>,
}

impl Shell {
    /// Its name in `SINEW_COMPLETE`.
    pub fn name(self) -> &'static str {
        match self {
            Shell::Bash => "bash",
            Shell::Zsh => "zsh",
            Shell::Fish => "fish",
        }
    }

    pub fn script(self) -> &'static str {
        match self {
            Shell::Bash => include_str!("sinew.bash"),
            Shell::Zsh => include_str!("sinew.zsh"),
            Shell::Fish => include_str!("sinew.fish"),
        }
    }

    /// What the shell asks for.
    pub fn asked(self) -> Option<Asked> {
        if self == Shell::Bash {
            let breaks = std::env::var("SINEW_BREAKS").ok()?;
            let line = Line::split(&std::env::var("SINEW_LINE").ok()?, &breaks);
            return Some(Asked {
                words: line.words(),
                unquoted: Some(line.last),
            });
        }
        let mut words = std::env::args().skip_while(|word| word != "--");
        words.next()?;
        Some(Asked {
            words: words.collect(),
            unquoted: None,
        })
    }
}

impl Asked {
    /// The line that offers a value, where the shell can take it.
    pub fn line(&self, value: &str, help: &str) -> Option<String> {
        let is_plain = |text: &str| !text.chars().any(char::is_control);
        if !is_plain(value) {
            return None;
        }
        match &self.unquoted {
            Some(word) => word.completed(value),
            None if is_plain(help) && !help.is_empty() => Some(format!("{value}\t{help}")),
            None => Some(value.into()),
        }
    }
}
