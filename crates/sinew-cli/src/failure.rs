//! Why a command failed: what happened, the likely cause, the remedy, and the exit code.

use std::sync::Arc;

use miette::{Diagnostic, NamedSource, SourceSpan};
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
    Proto(#[from] protox::Error),

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

    #[error("the call of {method} ended with {status}{}", meaning(*status))]
    #[diagnostic(code(sinew::status))]
    Status {
        method: String,
        status: Status,
        #[help]
        help: Option<String>,
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

    /// The generator's report has source lines of its own.
    #[error("{0}")]
    Mistakes(#[from] sinew_gen::Report),

    /// So has this one.
    #[error("{0}\nerror: {count} in the system file, nothing was generated", count = counted(.0))]
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
    Internal { what: String, cause: String },
}

fn counted(error: &SystemError) -> String {
    match error.mistakes.len() {
        1 => "1 mistake".into(),
        more => format!("{more} mistakes"),
    }
}

fn meaning(status: Status) -> String {
    match status.meaning() {
        "" => String::new(),
        meaning => format!(": {}", meaning.trim_end_matches('.')),
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
            Failure::Stale { .. } => 1,
            Failure::Status { status, .. } | Failure::Outcome { status, .. } => code(*status),
            Failure::Placement { .. } | Failure::Internal { .. } => INTERNAL,
        }
    }
}

/// A status that pw_rpc does not define is UNKNOWN to the shell, and so is a failure with OK.
fn code(status: Status) -> u8 {
    let known = status.name().and_then(|_| u8::try_from(status.code()).ok());
    known.filter(|&code| code > 0).unwrap_or(2)
}
