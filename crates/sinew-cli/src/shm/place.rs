//! Where a link lies: `shm:PATH?offset=N`, or in the memory of an image that is started, `qemu:IMAGE`.

use std::fmt;
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::str::FromStr;

use sinew_io::qemu::Shared;
use sinew_io::{Address, Endpoint};

use crate::connection::explain;
use crate::failure::Failure;
use crate::progress::Progress;

/// A socket at which a process shows its links, or a file or device in which one lies.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Place {
    pub path: PathBuf,
    /// Of the link in the file or device, in bytes.
    pub offset: u64,
    /// The image that is started for it.
    pub image: Option<Box<Endpoint>>,
}

impl Place {
    /// Starts the image, where there is one; the path is then that of its memory.
    pub fn start(&mut self) -> Result<Option<Shared>, Failure> {
        let Some(at) = &self.image else {
            return Ok(None);
        };
        let Address::Qemu(emulated) = &at.address else {
            return Ok(None);
        };
        let _shown = Progress::waiting(format!("starting {}", at.address));
        let shared = Shared::open(at, emulated).map_err(|error| {
            let (cause, help) = explain(at, &error);
            Failure::NoConnection {
                endpoint: at.address.to_string(),
                cause,
                help,
            }
        })?;
        let memory = shared.memory().as_raw_fd();
        self.path = format!("/proc/self/fd/{memory}").into();
        Ok(Some(shared))
    }
}

impl FromStr for Place {
    type Err = String;

    fn from_str(text: &str) -> Result<Place, String> {
        if text.starts_with("qemu:") {
            let image: Endpoint = text.parse().map_err(|error| format!("{error}"))?;
            return Ok(Place {
                path: PathBuf::new(),
                offset: 0,
                image: Some(Box::new(image)),
            });
        }
        let rest = text
            .strip_prefix("shm:")
            .ok_or("write shm:PATH or qemu:IMAGE")?;
        let (path, options) = rest.rsplit_once('?').unwrap_or((rest, ""));
        if path.is_empty() {
            return Err("a path must follow the colon".into());
        }
        let mut offset = None;
        for option in options.split('&').filter(|option| !option.is_empty()) {
            if offset.is_some() {
                return Err(format!("`{option}` is one option too many: leave it out"));
            }
            offset = Some(match option.split_once('=') {
                Some(("offset", value)) => number(value).ok_or_else(|| {
                    format!("`{value}` is no offset: write bytes, as in 65536 or 0x3000_0000")
                })?,
                _ => {
                    return Err(format!(
                        "there is no option `{option}`: known is offset; a path that contains a \
                         `?` must end in one more"
                    ));
                }
            });
        }
        Ok(Place {
            path: path.into(),
            offset: offset.unwrap_or(0),
            image: None,
        })
    }
}

fn number(text: &str) -> Option<u64> {
    let digits = text.replace('_', "");
    match digits.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => digits.parse().ok(),
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(image) = &self.image {
            return image.fmt(f);
        }
        let path = self.path.display().to_string();
        write!(f, "shm:{path}")?;
        match self.offset {
            0 if path.contains('?') => f.write_str("?"),
            0 => Ok(()),
            offset => write!(f, "?offset={offset:#x}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_is_parsed_and_written_back() {
        for text in [
            "shm:/run/link",
            "shm:/dev/mem?offset=0x30000000",
            "shm:/odd/na?me?",
            "shm:/odd/na?me?offset=0x40",
            "qemu:board?mtu=128",
        ] {
            assert_eq!(text.parse::<Place>().unwrap().to_string(), text);
        }
        let place: Place = "shm:x?offset=65_536".parse().unwrap();
        assert_eq!(place.offset, 0x1_0000);
    }

    #[test]
    fn bad_texts_are_refused_with_their_cause() {
        let error = |text: &str| text.parse::<Place>().unwrap_err();
        assert!(error("unix:/x").contains("shm:PATH"));
        assert!(error("shm:").contains("path"));
        assert!(error("shm:/x?offset=far").contains("`far` is no offset"));
        assert!(error("shm:/x?offset=0&offset=64").contains("`offset=64` is one option too many"));
        assert!(error("shm:/x?channel=1").contains("no option `channel=1`"));
    }
}
