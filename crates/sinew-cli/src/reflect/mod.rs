//! What a device says of itself by `sinew.Reflection`: read once, and kept by its hash.
//!
//! | module | what it is for |
//! |---|---|
//! | `cache` | schemas that were read before |
//! | `known` | schemas that a device need not keep |
//! | `list`, `describe` | the commands |
//! | `names` | what a device may call things |
//! | `pool` | schemas of others, checked and joined |
//! | `proto` | descriptors as .proto text |

use std::time::{Duration, Instant};

use prost_reflect::DescriptorPool;
use sinew::rpc::packet::HEADER_MAX;
use sinew::rpc::{CallError, Status};
use sinew_io::{AnyLink, Client, Endpoint, Link as _};
use sinew_services::{DescribeRequest, Description, Piece, ReadRequest, reflection};

use crate::connection;
use crate::failure::Failure;
use crate::output::plain;
use crate::progress::Progress;
use crate::silence::{self, Patience};

pub mod cache;
pub mod describe;
mod known;
pub mod list;
mod names;
pub mod pool;
pub mod proto;

/// More than any device has: a count, or a size of all, above it is a mistake of the device.
const MOST_SCHEMAS: u32 = 256;
const MOST_BYTES: u32 = 16 << 20;
/// Tag and length of a piece's bytes.
const PIECE_HEAD: usize = 4;
/// A device whose packets are as small as they can be sends that much in one.
const LEAST: usize = 16;

type Device<'c> = reflection::Client<&'c Client<AnyLink>>;

/// How long an answer is waited for where the user says nothing of it.
pub const PATIENCE: Patience = Patience::Fixed(Duration::from_secs(5));

/// Asks a device what it serves, with so much patience for each answer; the link is kept in the client.
pub fn ask(
    endpoint: &Endpoint,
    patience: Patience,
) -> Result<(Client<AnyLink>, DescriptorPool), Failure> {
    let link = connection::open(endpoint, None)?;
    let mut client = Client::new(link, endpoint.channel);
    client.set_timeout(patience.span());
    let pool = read(&client, endpoint, Waits::User(patience))?;
    Ok((client, pool))
}

/// Who waits for what is read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Waits {
    /// Somebody at a terminal, who is shown how far it has come.
    User(Patience),
    /// A screen, on which nothing else may be shown, until then.
    Screen { until: Instant },
}

impl Waits {
    fn is_too_late(self) -> bool {
        match self {
            Waits::User(_) => false,
            Waits::Screen { until } => Instant::now() > until,
        }
    }

    fn is_user(self) -> bool {
        matches!(self, Waits::User(_))
    }

    fn patience(self) -> Patience {
        match self {
            Waits::User(patience) => patience,
            Waits::Screen { .. } => PATIENCE,
        }
    }
}

/// All that the device serves, as far as it says so, and that it says so.
pub fn read(
    client: &Client<AnyLink>,
    endpoint: &Endpoint,
    waits: Waits,
) -> Result<DescriptorPool, Failure> {
    let mut device: Device<'_> = reflection::Client(client);
    let what = || format!("asking {} what it serves", endpoint.address);
    let mut shown = waits.is_user().then(|| Progress::waiting(what()));
    let (mut known, mut all) = (Vec::new(), Vec::new());
    let mut schemas = 1;
    let mut size = 0u32;
    while (known.len() as u32) < schemas {
        if waits.is_too_late() {
            return Err(wrong(endpoint, "it takes too long"));
        }
        let at = known.len() as u32;
        let described = device
            .describe(&DescribeRequest { schema: at })
            .map_err(|error| refused(client, endpoint, waits, error))?;
        schemas = described.schemas;
        size = size.saturating_add(described.size);
        if schemas > MOST_SCHEMAS || size > MOST_BYTES {
            return Err(wrong(
                endpoint,
                "it says that it has more than any device has",
            ));
        }
        let bytes = match cache::get(&described) {
            Some(bytes) => bytes,
            None => {
                drop(shown.take());
                let bytes = fetch(&mut device, endpoint, at, &described, waits)?;
                cache::put(&described, &bytes);
                bytes
            }
        };
        all.push(bytes);
        known.push(described);
    }
    let pool = pool::joined(&all).map_err(|why| wrong(endpoint, &plain(&why)))?;
    cache::remember(endpoint, &known);
    Ok(pool)
}

/// What the device said when it was asked last.
pub fn remembered(endpoint: &Endpoint) -> Option<DescriptorPool> {
    pool::joined(&cache::recall(endpoint)?).ok()
}

/// One schema, piece by piece, each as large as a packet of either side takes.
fn fetch(
    device: &mut Device<'_>,
    endpoint: &Endpoint,
    schema: u32,
    described: &Description,
    waits: Waits,
) -> Result<Vec<u8>, Failure> {
    let size = described.size as usize;
    let mtu = device.0.with_link(|link| link.halves().0.mtu());
    let most = Piece::default().data.capacity();
    let mut limit = mtu
        .saturating_sub(HEADER_MAX + PIECE_HEAD)
        .clamp(LEAST, most);
    let mut bytes = Vec::new();
    let shown = waits
        .is_user()
        .then(|| Progress::bytes("reading what it serves", size as u64));
    while bytes.len() < size {
        let wanted = ReadRequest {
            schema,
            offset: bytes.len() as u32,
            limit: limit as u32,
        };
        if waits.is_too_late() {
            return Err(wrong(endpoint, "it takes too long"));
        }
        match device.read(&wanted) {
            Ok(piece) if piece.data.is_empty() => {
                return Err(wrong(endpoint, "its schema ends before its end"));
            }
            Ok(piece) => bytes.extend_from_slice(&piece.data),
            // The device's packets are smaller than this side's.
            Err(CallError::Status(Status::INTERNAL | Status::RESOURCE_EXHAUSTED))
                if limit > LEAST =>
            {
                limit = (limit / 2).max(LEAST);
            }
            Err(error) => return Err(refused(device.0, endpoint, waits, error)),
        }
        if let Some(shown) = &shown {
            shown.bar().set_position(bytes.len() as u64);
        }
    }
    drop(shown);
    match bytes.len() == size && cache::hash(&bytes) == described.hash {
        true => Ok(bytes),
        false => Err(wrong(
            endpoint,
            "its schema does not have the hash that it says",
        )),
    }
}

fn refused(
    client: &Client<AnyLink>,
    endpoint: &Endpoint,
    waits: Waits,
    error: CallError,
) -> Failure {
    if let Some(failure) = silence::explain(client, endpoint, waits.patience(), error) {
        return failure;
    }
    let at = &endpoint.address;
    match error {
        // What a server of pw_rpc answers to what it does not have.
        CallError::Status(status @ (Status::NOT_FOUND | Status::UNIMPLEMENTED)) => {
            Failure::outcome(
                status,
                format!("{at} does not say what it serves: it has no sinew.Reflection"),
                "`sinew call … --proto FILE` calls it with the .proto file of its services; a server \
                 of Sinew says them where sinew_services::reflection is served beside its own",
            )
        }
        error => Failure::outcome(
            error.status(),
            format!("{at} could not be asked what it serves: {error}"),
            "look at the device and the line; `sinew call … --proto FILE` works without asking",
        ),
    }
}

fn wrong(endpoint: &Endpoint, why: &str) -> Failure {
    Failure::outcome(
        Status::DATA_LOSS,
        format!(
            "{} says what it serves in a way that cannot be read: {why}",
            endpoint.address
        ),
        "build its image again; `sinew call … --proto FILE` works without asking",
    )
}
