//! The services by which a device tells of itself. Each is optional, and served beside a device's own.
//!
//! No heap, no std, no link.
//!
//! | module | what it tells |
//! |---|---|
//! | [`reflection`] | which services and messages there are |
//! | [`log`] | what happens, as records |
//! | [`device`] | who it is, since when it runs, what it has counted, and how its methods do |
#![no_std]
#![forbid(unsafe_code)]

pub mod device;
pub mod log;
pub mod reflection;

mod made {
    #![allow(missing_docs)] // the comments of the .proto are the docs
    ::sinew::include_proto!("reflection");
}

mod made_device {
    #![allow(missing_docs)] // as above
    ::sinew::include_proto!("device");
}

mod made_log {
    #![allow(missing_docs)] // as above
    ::sinew::include_proto!("log");
}

pub use made::sinew::{DescribeRequest, Description, Piece, ReadRequest};
pub use made_device::sinew::{
    Counter, IndexRequest, Info, InfoRequest, ObservedMethod, Values, ValuesRequest,
};
pub use made_log::sinew::Record_ as record;
pub use made_log::sinew::{Record, RecordsRequest, Severity};
