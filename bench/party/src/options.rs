//! What a party is told on its command line.

use crate::Result;

/// What a party does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// Sends samples.
    Publish,
    /// Counts them.
    Subscribe,
    /// Sends a sample and waits for it.
    Ping,
    /// Sends every sample back.
    Pong,
    /// Is in between.
    Router,
}

/// What is between two parties.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Path {
    /// A link from one to the other.
    Peer,
    /// A router, which both connect to.
    Router,
    /// Shared memory.
    Shm,
}

impl Path {
    /// As on the command line.
    pub fn word(self) -> &'static str {
        match self {
            Path::Peer => "peer",
            Path::Router => "router",
            Path::Shm => "shm",
        }
    }
}

/// All of a command line.
#[derive(Debug)]
pub struct Options {
    /// What to do.
    pub role: Role,
    /// What is in between.
    pub path: Path,
    /// Where to listen or to connect, as Zenoh writes it: `tcp/127.0.0.1:7447`.
    pub endpoint: String,
    /// Bytes of a payload, at least 8.
    pub size: usize,
    /// Samples may wait for others to leave in one batch. Where not, each leaves at once, alone.
    pub batched: bool,
    /// The one processor that all its threads have, if it may not have all.
    pub core: Option<usize>,
    /// More, by name, which only this contender knows.
    pub settings: Vec<(String, String)>,
}

impl Options {
    /// Reads a command line, without the program's own name.
    pub fn read(words: impl IntoIterator<Item = String>) -> Result<Self> {
        let mut words = words.into_iter();
        let role = match words.next().as_deref() {
            Some("publish") => Role::Publish,
            Some("subscribe") => Role::Subscribe,
            Some("ping") => Role::Ping,
            Some("pong") => Role::Pong,
            Some("router") => Role::Router,
            other => return Err(format!("no such role: {other:?}").into()),
        };
        let mut options = Options {
            role,
            path: Path::Peer,
            endpoint: "tcp/127.0.0.1:7447".into(),
            size: 8,
            batched: true,
            core: None,
            settings: Vec::new(),
        };
        while let Some(name) = words.next() {
            let value = words.next().ok_or_else(|| format!("{name} what?"))?;
            match (name.as_str(), value.as_str()) {
                ("--path", "peer") => options.path = Path::Peer,
                ("--path", "router") => options.path = Path::Router,
                ("--path", "shm") => options.path = Path::Shm,
                ("--endpoint", _) => options.endpoint = value,
                ("--size", _) => options.size = value.parse()?,
                ("--batched", "yes") => options.batched = true,
                ("--batched", "no") => options.batched = false,
                ("--core", _) => options.core = Some(value.parse()?),
                ("--set", _) => {
                    let (name, value) = value.split_once('=').ok_or("--set NAME=VALUE")?;
                    options.settings.push((name.into(), value.into()));
                }
                _ => return Err(format!("{name} {value}: not known").into()),
            }
        }
        if options.size < 8 {
            return Err("--size: a payload holds 8 bytes at least, its number".into());
        }
        Ok(options)
    }

    /// Whether this party listens at the endpoint; otherwise it connects to it.
    pub fn listens(&self) -> bool {
        match self.path {
            Path::Router => self.role == Role::Router,
            Path::Peer | Path::Shm => matches!(self.role, Role::Subscribe | Role::Pong),
        }
    }

    /// A setting of the contender's own, if it was given.
    pub fn setting(&self, name: &str) -> Option<&str> {
        let mut settings = self.settings.iter();
        settings.find_map(|(own, value)| (own == name).then_some(value.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Options> {
        Options::read(text.split(' ').map(String::from))
    }

    #[test]
    fn a_command_line_is_read_as_it_is_written() {
        let text =
            "publish --path router --endpoint tcp/127.0.0.1:1 --size 64 --batched no --set a=b=c";
        let options = read(text).unwrap();
        assert_eq!((options.role, options.path), (Role::Publish, Path::Router));
        assert_eq!((options.size, options.batched), (64, false));
        assert_eq!(options.setting("a"), Some("b=c"));
        assert!(!options.listens());
    }

    #[test]
    fn who_answers_listens_where_there_is_no_router() {
        assert!(read("pong --path peer").unwrap().listens());
        assert!(!read("pong --path router").unwrap().listens());
        assert!(read("router --path router").unwrap().listens());
    }

    #[test]
    fn what_is_not_known_is_refused() {
        for text in [
            "shout",
            "ping --size",
            "ping --size 7",
            "ping --batched perhaps",
            "ping --set a",
        ] {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
