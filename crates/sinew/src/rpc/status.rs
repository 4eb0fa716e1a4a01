//! Status codes: those of gRPC, as in pw_rpc (wire reference, section Status codes).

use core::fmt;

/// How a call ended. The same numbers as gRPC and pw_status.
///
/// Any 32-bit value can arrive from a peer; one above 16 is kept as it is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Status(u32);

macro_rules! statuses {
    ($($name:ident = $code:literal, $doc:literal;)*) => {
        impl Status {
            $(#[doc = $doc] pub const $name: Status = Status($code);)*

            /// The standard name, for example `NOT_FOUND`; `None` above 16.
            pub const fn name(self) -> Option<&'static str> {
                match self.0 { $($code => Some(stringify!($name)),)* _ => None }
            }

            /// The likely meaning in one line, also of a number above 16.
            pub const fn meaning(self) -> &'static str {
                match self.0 { $($code => $doc,)* _ => UNKNOWN_CODE }
            }
        }
    };
}

statuses! {
    OK = 0, "Success.";
    CANCELLED = 1, "The caller or the service ended the call before it was complete.";
    UNKNOWN = 2, "An error of which nothing more is known.";
    INVALID_ARGUMENT = 3, "The request, or the kind of packet, does not fit the method.";
    DEADLINE_EXCEEDED = 4, "The deadline passed before the answer came.";
    NOT_FOUND = 5, "The server has no such service or method, or no such entity.";
    ALREADY_EXISTS = 6, "What was to be made exists already.";
    PERMISSION_DENIED = 7, "The caller may not do this.";
    RESOURCE_EXHAUSTED = 8, "A queue, a call slot or a buffer is full; retry later or configure more.";
    FAILED_PRECONDITION = 9, "The server is not in the state that this needs, or has no such call.";
    ABORTED = 10, "The call was given up by the side that ran it.";
    OUT_OF_RANGE = 11, "A value lies outside of the valid range.";
    UNIMPLEMENTED = 12, "The method exists but does nothing here.";
    INTERNAL = 13, "An invariant was broken, or an answer did not fit its buffer.";
    UNAVAILABLE = 14, "The service or the link is not there now; retry later.";
    DATA_LOSS = 15, "Bytes were lost, or a message could not be decoded or exceeds a capacity of its reader.";
    UNAUTHENTICATED = 16, "The caller is not known.";
}

/// Above 16.
const UNKNOWN_CODE: &str =
    "pw_rpc has no such number: the service has its own, or its side is of a later version.";

impl Status {
    /// The status with this number, whatever it is.
    pub const fn from_code(code: u32) -> Status {
        Status(code)
    }

    /// The number on the wire.
    pub const fn code(self) -> u32 {
        self.0
    }

    /// Whether the call succeeded.
    pub const fn is_ok(self) -> bool {
        self.0 == 0
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "status {}", self.0),
        }
    }
}

impl fmt::Debug for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl core::error::Error for Status {}
