//! What an image says of itself.

use std::path::PathBuf;

use object::{Object, ObjectSection};

use super::error::StartError;
use super::machine::Machine;
use crate::endpoint::{Carrier, DEFAULT_MTU, Emulated, MAX_BATCH, MIN_MTU};

/// Where an image says it.
const SECTION: &str = ".sinew.board";

/// An image, and how it is run.
#[derive(Debug)]
pub(super) struct Image {
    pub path: PathBuf,
    /// That of the second core, which lies beside it.
    pub second: Option<PathBuf>,
    pub machine: &'static Machine,
    pub carrier: Carrier,
    /// The largest packet in bytes.
    pub mtu: usize,
}

impl Image {
    /// Reads what the image says; what the endpoint says of it comes first.
    pub fn read(emulated: &Emulated) -> Result<Image, StartError> {
        let path = &emulated.image;
        let bytes = std::fs::read(path).map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => StartError::NoImage,
            _ => StartError::Io(error),
        })?;
        let file = object::File::parse(&*bytes).map_err(|_| StartError::NoElf)?;
        let note = file.section_by_name(SECTION);
        let note = note.and_then(|note| note.data().ok()).unwrap_or_default();
        let note = String::from_utf8_lossy(note);
        let says = |key: &str| {
            let mut words = note.split_whitespace();
            words.find_map(|word| word.strip_prefix(key)?.strip_prefix('='))
        };
        let name = emulated.machine.as_deref().or_else(|| says("machine"));
        let name = name.ok_or(StartError::Unnamed)?;
        let machine = Machine::named(name).ok_or_else(|| StartError::NoMachine(name.into()))?;
        if file.architecture() != machine.architecture {
            return Err(StartError::Foreign(machine, file.architecture()));
        }
        let carrier = match (emulated.carrier, says("link")) {
            (Some(carrier), _) => carrier,
            (None, Some(name)) => {
                Carrier::from_name(name).ok_or_else(|| StartError::NoCarrier(name.into()))?
            }
            (None, None) => Carrier::Uart,
        };
        let second = says("second").map(|name| path.with_file_name(name));
        if let Some(missing) = second.as_ref().filter(|second| !second.exists()) {
            return Err(StartError::NoSecond(missing.clone()));
        }
        let mtu = says("mtu").and_then(|text| text.parse().ok());
        let mtu = mtu.filter(|mtu| (MIN_MTU..=MAX_BATCH).contains(mtu));
        Ok(Image {
            path: path.clone(),
            second,
            machine,
            carrier,
            mtu: mtu.unwrap_or(DEFAULT_MTU),
        })
    }
}
