//! Mistakes, all at once, each with its source line and the remedy.

use std::fmt;

/// One mistake of a .proto, of an .options file, or of the run.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Mistake {
    /// The file, as it was named or found.
    pub file: String,
    /// Line, from 1; 0 where the mistake is the file's as a whole.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// Number of characters that are meant.
    pub width: usize,
    /// The text of the line.
    pub source_line: String,
    /// What is wrong.
    pub message: String,
    /// What to do about it; empty where that is plain.
    pub remedy: String,
}

impl Mistake {
    /// A mistake without a place in a file.
    pub(crate) fn of_file(file: impl Into<String>, message: impl Into<String>) -> Self {
        Mistake {
            file: file.into(),
            message: message.into(),
            ..Mistake::default()
        }
    }

    pub(crate) fn remedy(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = remedy.into();
        self
    }
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "error: {}", self.message)?;
        let number = match self.line {
            0 => String::new(),
            line => line.to_string(),
        };
        let gap = " ".repeat(number.len());
        match self.line {
            0 => writeln!(f, " --> {}", self.file)?,
            line => {
                writeln!(f, "{gap}--> {}:{line}:{}", self.file, self.column)?;
                // A tab is one character of the marker line, too.
                let lead: String = self
                    .source_line
                    .chars()
                    .take(self.column.saturating_sub(1))
                    .map(|c| if c == '\t' { '\t' } else { ' ' })
                    .collect();
                writeln!(f, "{gap} |")?;
                writeln!(f, "{number} | {}", self.source_line)?;
                writeln!(f, "{gap} | {lead}{}", "^".repeat(self.width.max(1)))?;
            }
        }
        if !self.remedy.is_empty() {
            writeln!(f, "{gap} = help: {}", self.remedy)?;
        }
        Ok(())
    }
}

/// Why nothing was generated: every mistake of the run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Report {
    /// In the order of files and lines; never empty.
    pub mistakes: Vec<Mistake>,
}

impl Report {
    pub(crate) fn one(mistake: Mistake) -> Self {
        Report {
            mistakes: vec![mistake],
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for mistake in &self.mistakes {
            writeln!(f, "{mistake}")?;
        }
        match self.mistakes.len() {
            1 => write!(f, "error: 1 mistake, nothing was generated"),
            n => write!(f, "error: {n} mistakes, nothing was generated"),
        }
    }
}

impl std::error::Error for Report {}
