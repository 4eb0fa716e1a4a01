//! Why there is no board.

use std::fmt;
use std::io;
use std::path::PathBuf;

use object::Architecture;

use super::board::Ended;
use super::machine::{MACHINES, Machine};
use crate::endpoint::{MAX_BATCH, MIN_MTU};
use crate::remedy::remedy;

/// Why an image could not be started. Says the likely cause and the remedy.
#[derive(Debug)]
pub enum StartError {
    /// There is no such file.
    NoImage,
    /// There is no image for the second core, which the first one says to be here.
    NoSecond(PathBuf),
    /// The file is no image.
    NoElf,
    /// Neither the image nor the endpoint says on which machine it runs.
    Unnamed,
    /// What the image says of itself cannot be.
    Word(String),
    /// There is no entry for the machine in [`MACHINES`].
    NoMachine(String),
    /// The image says that it talks by something else.
    NoCarrier(String),
    /// The image is for another processor than the machine's.
    Foreign(&'static Machine, Architecture),
    /// Memory is asked for, and the machine shares none, or the image does not.
    SharesNothing(&'static Machine),
    /// The emulator is not installed.
    NoProgram(&'static Machine),
    /// What ends the emulator with this process is not installed.
    NoGuard,
    /// The emulator, or the image in it, has ended at once.
    Ended(Ended),
    /// The emulator does not come up.
    Silent,
    /// The operating system refused.
    Io(io::Error),
}

impl From<io::Error> for StartError {
    fn from(error: io::Error) -> Self {
        StartError::Io(error)
    }
}

impl StartError {
    /// What happened.
    pub fn cause(&self) -> String {
        match self {
            StartError::NoImage => "there is no such image".into(),
            StartError::NoSecond(path) => {
                format!("the second core's image is missing: {}", path.display())
            }
            StartError::NoElf => "this is no image: no ELF file".into(),
            StartError::Unnamed => "the image does not say on which machine it runs".into(),
            StartError::Word(word) => format!("the image says `{word}`, which cannot be"),
            StartError::NoMachine(name) => format!("the machine `{name}` is not known here"),
            StartError::NoCarrier(name) => {
                format!("the image says that it talks by `{name}`, which is not known here")
            }
            StartError::Foreign(machine, found) => format!(
                "the image is for {}, and {} runs {}",
                lower(*found),
                machine.name,
                lower(machine.architecture)
            ),
            StartError::SharesNothing(machine) => {
                format!("the image on {} shares no memory", machine.name)
            }
            StartError::NoProgram(machine) => format!("{} is missing", machine.program),
            StartError::NoGuard => "setpriv is missing".into(),
            StartError::Ended(ended) => ended.to_string(),
            StartError::Silent => "the emulator does not come up".into(),
            StartError::Io(error) => error.to_string(),
        }
    }

    /// What to do about it.
    pub fn remedy(&self) -> String {
        let names = || {
            let names: Vec<_> = MACHINES.iter().map(|machine| machine.name).collect();
            names.join(", ")
        };
        match self {
            StartError::NoImage => "check the path, or build it: those of Sinew's own folder by \
                                    `make -C firmware images`"
                .into(),
            StartError::NoSecond(_) => "build it as well, into the same folder".into(),
            StartError::NoElf => "give the file that the linker has written".into(),
            StartError::Unnamed => format!("give the option machine=NAME, one of {}", names()),
            StartError::Word(_) => format!(
                "correct its `board!`: mtu= is {MIN_MTU} to {MAX_BATCH}, second= a file beside it"
            ),
            StartError::NoMachine(_) => format!("give the option machine=NAME, one of {}", names()),
            StartError::NoCarrier(_) => "give the option link=uart or link=shm".into(),
            StartError::Foreign(..) => {
                "give the image that was built for this machine, or another machine=NAME".into()
            }
            StartError::SharesNothing(_) => "take an image and a machine that do".into(),
            StartError::NoProgram(machine) => {
                format!("install it: apt-get install {}", machine.package)
            }
            StartError::NoGuard => "install it: apt-get install util-linux".into(),
            StartError::Ended(ended) if ended.said().is_empty() => {
                "look why the image ends: it was built for another board, or found an error".into()
            }
            StartError::Ended(_) => "check the image and the machine".into(),
            StartError::Silent => "look whether this computer is overloaded, then try again".into(),
            StartError::Io(error) => {
                let remedy = remedy(error);
                remedy.unwrap_or("check the path of the image").into()
            }
        }
    }
}

fn lower(architecture: Architecture) -> String {
    format!("{architecture:?}").to_lowercase()
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.cause(), self.remedy())
    }
}

impl std::error::Error for StartError {}
