//! Why a command failed: what happened, the likely cause, the remedy, and the exit code.

use std::fmt::Display;
use std::sync::Arc;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use miette::{
    Diagnostic, LabeledSpan, MietteHandlerOpts, NamedSource, Report, SourceCode, SourceSpan,
};
use serde_json::{Value, json};
use sinew::rpc::Status;
use sinew_shm::domain::file::system::SystemError;
use thiserror::Error;

/// Wrong arguments, a wrong .proto, or wrong JSON.
pub const USAGE: u8 = 64;
/// The endpoint cannot be reached, or the link went away.
pub const NO_CONNECTION: u8 = 69;
/// The tool's own surroundings failed.
pub const INTERNAL: u8 = 70;

/// What any command can fail with.
#[derive(Debug, Error, Diagnostic)]
pub enum Failure {
    #[error("{what}")]
    #[diagnostic(code(sinew::usage))]
    Usage {
        what: String,
        #[help]
        help: String,
    },

    /// What clap says of the arguments.
    #[error("{what}: {cause}")]
    #[diagnostic(code(sinew::arguments))]
    Arguments {
        what: String,
        cause: String,
        #[help]
        help: String,
    },

    #[error("{problem}")]
    #[diagnostic(code(sinew::json))]
    Json {
        problem: String,
        #[source_code]
        text: Arc<NamedSource<String>>,
        #[label("here")]
        at: SourceSpan,
        #[help]
        help: String,
    },

    #[error(transparent)]
    #[diagnostic(transparent)]
    Proto(#[from] BadProto),

    #[error("cannot reach {endpoint}: {cause}")]
    #[diagnostic(code(sinew::no_connection))]
    NoConnection {
        endpoint: String,
        cause: String,
        #[help]
        help: String,
    },

    #[error("cannot serve {endpoint}: {cause}")]
    #[diagnostic(code(sinew::cannot_serve))]
    CannotServe {
        endpoint: String,
        cause: String,
        #[help]
        help: String,
    },

    #[error("the connection to {endpoint} went away before the call was complete")]
    #[diagnostic(code(sinew::connection_lost))]
    ConnectionLost {
        endpoint: String,
        #[help]
        help: String,
    },

    #[error("the session at {endpoint} was lost: {cause}")]
    #[diagnostic(code(sinew::session_lost))]
    SessionLost {
        endpoint: String,
        cause: String,
        #[help]
        help: String,
    },

    /// What was to be done is done in part, or not: samples that did not leave, queries that
    /// nobody answered.
    #[error("{what}")]
    #[diagnostic(code(sinew::outcome))]
    Outcome {
        what: String,
        status: Status,
        #[help]
        help: String,
    },

    #[error("{what}")]
    #[diagnostic(code(sinew::timeout))]
    Timeout {
        what: String,
        #[help]
        help: String,
    },

    #[error("the call of {method} ended with {status}: {}", status.meaning().trim_end_matches('.'))]
    #[diagnostic(code(sinew::status))]
    Status {
        method: String,
        status: Status,
        #[help]
        help: String,
    },

    #[error("cancelled")]
    #[diagnostic(code(sinew::cancelled), help("the server has been told"))]
    Cancelled,

    #[error(
        "the message of {bytes} bytes is too large: a packet on this link takes at most {limit} bytes, {room} of them for the message"
    )]
    #[diagnostic(
        code(sinew::too_large),
        help("shorten the message, or raise --mtu here and the server's limit to the same value")
    )]
    TooLarge {
        bytes: usize,
        limit: usize,
        room: usize,
    },

    #[error("the answer is no {message}: {cause}")]
    #[diagnostic(
        code(sinew::undecodable),
        help(
            "client and server use different .proto files: give --proto the one that the server was built from"
        )
    )]
    Undecodable { message: String, cause: String },

    #[error("generated files are stale:\n  {files}")]
    #[diagnostic(
        code(sinew::stale),
        help("run the same command without --check, then commit the result")
    )]
    Stale { files: String },

    #[error("{what}")]
    #[diagnostic(code(sinew::different))]
    Different {
        what: String,
        #[help]
        help: String,
    },

    /// The generator's report has source lines of its own.
    #[error("{0}")]
    Mistakes(#[from] sinew_gen::Report),

    /// So has this one.
    #[error("{0}\nerror: {count} in the system file, nothing was generated\n  help: each line names the remedy", count = counted(.0))]
    System(#[from] SystemError),

    #[error("{placement}: {cause}")]
    #[diagnostic(code(sinew::placement))]
    Placement {
        placement: String,
        cause: String,
        #[help]
        help: String,
    },

    #[error("{what}: {cause}")]
    #[diagnostic(code(sinew::internal))]
    Internal {
        what: String,
        cause: String,
        #[help]
        help: String,
    },
}

/// A .proto file that cannot be read, as protox shows it, and what to do about it.
#[derive(Debug, Error)]
#[error(transparent)]
pub struct BadProto(#[from] protox::Error);

impl BadProto {
    fn remedy(&self) -> &'static str {
        match self.0.is_file_not_found() {
            true => "check the name, or give the folder in which it is looked up: -I DIR",
            false => "correct the file; `sinew gen --check` shows all of its mistakes",
        }
    }
}

impl Diagnostic for BadProto {
    fn code(&self) -> Option<Box<dyn Display + '_>> {
        Some(Box::new("sinew::proto"))
    }

    fn help(&self) -> Option<Box<dyn Display + '_>> {
        match self.0.help() {
            Some(help) => Some(help),
            None => Some(Box::new(self.remedy())),
        }
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        self.0.source_code()
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        self.0.labels()
    }

    fn related(&self) -> Option<Box<dyn Iterator<Item = &dyn Diagnostic> + '_>> {
        self.0.related()
    }
}

impl From<protox::Error> for Failure {
    fn from(error: protox::Error) -> Failure {
        Failure::Proto(BadProto(error))
    }
}

fn counted(error: &SystemError) -> String {
    match error.mistakes.len() {
        1 => "1 mistake".into(),
        more => format!("{more} mistakes"),
    }
}

impl Failure {
    /// A wrong argument with its remedy.
    pub fn usage(what: impl Into<String>, help: impl Into<String>) -> Failure {
        Failure::Usage {
            what: what.into(),
            help: help.into(),
        }
    }

    /// Something around the tool that it cannot do anything about.
    pub fn internal(what: impl Into<String>, cause: impl ToString) -> Failure {
        Failure::Internal {
            what: what.into(),
            cause: cause.to_string(),
            help: "the machine has too little of something (memory, threads, open files): free \
                   some, then try again"
                .into(),
        }
    }

    /// What clap says of the arguments, for the command that they name.
    pub fn arguments(error: &clap::Error, command: &str) -> Failure {
        let text = error.render().to_string();
        let mut parts = text.trim().split("\n\n");
        let first = parts.next().unwrap_or_default();
        let first = first.strip_prefix("error: ").unwrap_or(first);
        let tips = parts.filter_map(|part| part.trim().strip_prefix("tip: "));
        let mut help: Vec<String> = tips.map(String::from).collect();
        if let Some(ContextValue::StyledStr(usage)) = error.get(ContextKind::Usage) {
            let usage = usage.to_string();
            help.push(format!(
                "write {}",
                usage.trim_start_matches("Usage: ").trim()
            ));
        }
        help.push(format!("`{command} --help` shows all that it takes"));
        let help = help.join("\n");
        match (error.kind(), first.split_once("': ")) {
            (ErrorKind::ValueValidation, Some((what, cause))) => Failure::Arguments {
                what: format!("{what}'"),
                cause: cause.into(),
                help,
            },
            _ => Failure::usage(first, help),
        }
    }

    /// What became of it, with the status that the process exits with.
    pub fn outcome(status: Status, what: impl Into<String>, help: impl Into<String>) -> Failure {
        Failure::Outcome {
            what: what.into(),
            status,
            help: help.into(),
        }
    }

    /// What the process exits with.
    pub fn exit_code(&self) -> u8 {
        match self {
            Failure::Usage { .. }
            | Failure::Arguments { .. }
            | Failure::Json { .. }
            | Failure::Proto(_)
            | Failure::Mistakes(_)
            | Failure::System(_) => USAGE,
            Failure::NoConnection { .. }
            | Failure::CannotServe { .. }
            | Failure::ConnectionLost { .. }
            | Failure::SessionLost { .. } => NO_CONNECTION,
            Failure::Timeout { .. } => code(Status::DEADLINE_EXCEEDED),
            Failure::Cancelled => code(Status::CANCELLED),
            Failure::TooLarge { .. } => code(Status::OUT_OF_RANGE),
            Failure::Undecodable { .. } => code(Status::DATA_LOSS),
            Failure::Stale { .. } | Failure::Different { .. } => 1,
            Failure::Status { status, .. } | Failure::Outcome { status, .. } => code(*status),
            Failure::Placement { .. } | Failure::Internal { .. } => INTERNAL,
        }
    }
}

impl Failure {
    /// As people read it.
    pub fn text(self) -> String {
        let text = self.to_string();
        match self {
            Failure::Mistakes(_) if !text.contains("= help: ") => {
                text + "\n  help: correct the lines that are shown, then run it again"
            }
            Failure::Mistakes(_) | Failure::System(_) => text,
            failure => format!("{:?}", Report::new(failure)).trim_end().into(),
        }
    }

    /// As programs read it: one object, which is described in the book.
    pub fn json(&self) -> Value {
        let cause = self.cause();
        let mut what = self.to_string();
        if let Some(cause) = cause {
            let end = format!(": {cause}");
            what.truncate(what.strip_suffix(&end).map_or(what.len(), str::len));
        }
        let code = self.code().map(|code| code.to_string());
        let help = self.help().map(|help| help.to_string());
        json!({ "error": {
            "code": code.unwrap_or_else(|| "sinew::gen".into()),
            "what": what,
            "cause": cause,
            "help": help.unwrap_or_else(|| "each mistake names its remedy".into()),
            "exit": self.exit_code(),
        }})
    }

    /// What stands behind the colon, where it is known apart.
    fn cause(&self) -> Option<&str> {
        match self {
            Failure::Arguments { cause, .. }
            | Failure::NoConnection { cause, .. }
            | Failure::CannotServe { cause, .. }
            | Failure::SessionLost { cause, .. }
            | Failure::Undecodable { cause, .. }
            | Failure::Placement { cause, .. }
            | Failure::Internal { cause, .. } => Some(cause),
            _ => None,
        }
    }
}

/// Reports look alike on every machine, with colours only where standard error shows them.
pub fn look(has_colour: bool) {
    // Another one set before would win; there is none.
    let _ = miette::set_hook(Box::new(move |_| {
        let look = MietteHandlerOpts::new()
            .terminal_links(false)
            .unicode(true)
            .color(has_colour);
        Box::new(look.build())
    }));
}

/// A status that pw_rpc does not define is UNKNOWN to the shell, and so is a failure with OK.
fn code(status: Status) -> u8 {
    let known = status.name().and_then(|_| u8::try_from(status.code()).ok());
    known.filter(|&code| code > 0).unwrap_or(2)
}
