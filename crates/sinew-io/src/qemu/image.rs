//! What an image says of itself.

use std::path::{Path, PathBuf};

use object::{Architecture, Object, ObjectSection};

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
        let failed = |error: std::io::Error| match error.kind() {
            std::io::ErrorKind::NotFound => StartError::NoImage,
            _ => StartError::Io(error),
        };
        // What is read to its end has one.
        if !std::fs::metadata(path).map_err(failed)?.is_file() {
            return Err(StartError::NoElf);
        }
        let bytes = std::fs::read(path).map_err(failed)?;
        let file = object::File::parse(&*bytes).map_err(|_| StartError::NoElf)?;
        let note = file.section_by_name(SECTION);
        let note = note.and_then(|note| note.data().ok()).unwrap_or_default();
        Image::said(
            emulated,
            &String::from_utf8_lossy(note),
            file.architecture(),
        )
    }

    /// As this note says.
    fn said(emulated: &Emulated, note: &str, runs: Architecture) -> Result<Image, StartError> {
        let path = &emulated.image;
        let says = |key: &str| {
            let mut words = note.split_whitespace();
            words.find_map(|word| word.strip_prefix(key)?.strip_prefix('='))
        };
        let name = emulated.machine.as_deref().or_else(|| says("machine"));
        let name = name.ok_or(StartError::Unnamed)?;
        let machine = Machine::named(name).ok_or_else(|| StartError::NoMachine(name.into()))?;
        if runs != machine.architecture {
            return Err(StartError::Foreign(machine, runs));
        }
        let carrier = match (emulated.carrier, says("link")) {
            (Some(carrier), _) => carrier,
            (None, Some(name)) => {
                Carrier::from_name(name).ok_or_else(|| StartError::NoCarrier(name.into()))?
            }
            (None, None) => Carrier::Uart,
        };
        let second = says("second").map(|name| match Path::new(name).file_name() {
            Some(file) if file == name => Ok(path.with_file_name(name)),
            _ => Err(StartError::Word(format!("second={name}"))),
        });
        let second = second.transpose()?;
        if let Some(missing) = second.as_ref().filter(|second| !second.is_file()) {
            return Err(StartError::NoSecond(missing.clone()));
        }
        let mtu = says("mtu").map(|text| match text.parse() {
            Ok(mtu) if (MIN_MTU..=MAX_BATCH).contains(&mtu) => Ok(mtu),
            _ => Err(StartError::Word(format!("mtu={text}"))),
        });
        let mtu = mtu.transpose()?;
        Ok(Image {
            path: path.clone(),
            second,
            machine,
            carrier,
            mtu: mtu.unwrap_or(DEFAULT_MTU),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(note: &str) -> Result<Image, StartError> {
        let emulated = Emulated {
            image: Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml"),
            machine: None,
            carrier: None,
        };
        Image::said(&emulated, note, Architecture::Arm)
    }

    #[test]
    fn words_of_a_note_are_taken_and_unknown_ones_passed_over() {
        let image = said("machine=mps2-an521 later=1 link=uart mtu=64 second=src\n");
        assert!(matches!(image, Err(StartError::NoSecond(path)) if path.ends_with("src")));
        let image = said("machine=mps2-an385 link=shm mtu=128 later=1 second=README.md");
        assert!(matches!(image, Err(StartError::NoSecond(_))));
        let image = said("machine=mps2-an385 link=shm mtu=128 later=1 second=Cargo.toml");
        let image = image.unwrap();
        assert_eq!((image.mtu, image.carrier), (128, Carrier::Shm));
        assert!(image.second.unwrap().ends_with("sinew-io/Cargo.toml"));
        let image = said("machine=mps2-an385").unwrap();
        assert_eq!((image.mtu, image.carrier), (DEFAULT_MTU, Carrier::Uart));
    }

    #[test]
    fn words_that_cannot_be_are_named() {
        for word in [
            "mtu=48",
            "mtu=0",
            "mtu=-1",
            "mtu=65536",
            "mtu=",
            "second=../sinew/Cargo.toml",
            "second=/etc/passwd",
            "second=..",
            "second=",
        ] {
            let image = said(&format!("machine=mps2-an385 {word}"));
            assert!(
                matches!(&image, Err(StartError::Word(it)) if it == word),
                "{word}: {image:?}"
            );
        }
    }
}
