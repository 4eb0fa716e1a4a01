//! The texts of deferred records: what `defmt` left in the image's ELF file, and the values that came.
//!
//! They are made in a process of its own, this command once more: frames that are none of this image, or that somebody
//! made up, may name a list of four thousand million values, for which the decoder asks for memory at once. Then that
//! process ends, not this one; the next frame has a new one.
//!
//! The process reads frames, each behind its length in a byte, and writes a line of JSON for each.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use defmt_decoder::{DecodeError, Locations, Table};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::{Value, json};
use sinew_io::{Address, Endpoint};
use sinew_services::Severity;

use crate::failure::Failure;
use crate::output;

/// How long a text may take, the reading of the image included.
const PATIENCE: Duration = Duration::from_secs(20);
/// Beyond the image: what the making of texts may take.
const MEMORY: u64 = 1 << 30;
/// Endings without a text between, after which the image is not tried again.
const ATTEMPTS: u32 = 3;

/// The option that says where texts are.
#[derive(Debug, clap::Args)]
pub struct Elf {
    /// The ELF file of the image, which has the texts of deferred records; of qemu:IMAGE it is the image
    #[arg(long, value_name = "IMAGE")]
    elf: Option<PathBuf>,
}

impl Elf {
    /// What makes texts of this device's deferred records, where there is an image.
    pub fn texts(&self, endpoint: &Endpoint) -> Result<Option<Texts>, Failure> {
        match (&self.elf, &endpoint.address) {
            (Some(image), _) => {
                check(image)?;
                Ok(Some(Texts::new(image)))
            }
            (None, Address::Qemu(emulated)) => Ok(Some(Texts::new(&emulated.image))),
            _ => Ok(None),
        }
    }
}

/// What a record says, wherever its text was.
pub struct Text {
    pub severity: Severity,
    pub module: String,
    pub text: String,
    /// Why there is no text: then `text` is its bytes.
    pub problem: Option<String>,
}

/// The text of a frame, or why there is none.
pub fn text(texts: Option<&mut Texts>, frame: &[u8]) -> Result<Text, String> {
    match texts {
        Some(texts) => texts.text(frame),
        None => Err("the text is in the image: give --elf IMAGE".into()),
    }
}

/// Makes texts of the frames of one image.
pub struct Texts {
    image: PathBuf,
    maker: Option<Maker>,
    ended: u32,
    /// Why no text can be made.
    broken: Option<String>,
}

/// The process.
struct Maker {
    child: Child,
    frames: ChildStdin,
    lines: Receiver<String>,
}

impl Drop for Maker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// An image that cannot be used is said before anything is read.
fn check(image: &Path) -> Result<(), Failure> {
    let is_other = fs::metadata(image).is_ok_and(|there| !there.is_file());
    let loaded = match is_other {
        true => Err("it is no regular file".into()), // and might never end
        false => load(image).map(drop),
    };
    loaded.map_err(|why| {
        Failure::usage(
            format!("{} has no texts of records: {why}", image.display()),
            "give --elf the ELF file that the device runs, as the linker wrote it (not .bin, not stripped)",
        )
    })
}

impl Texts {
    /// Nothing is started before the first frame.
    fn new(image: &Path) -> Texts {
        Texts {
            image: image.into(),
            maker: None,
            ended: 0,
            broken: None,
        }
    }

    fn text(&mut self, frame: &[u8]) -> Result<Text, String> {
        if let Some(why) = &self.broken {
            return Err(why.clone());
        }
        match self.make(frame) {
            Some(line) => {
                self.ended = 0;
                read(&line)
            }
            None => {
                self.maker = None;
                self.ended += 1;
                let why = "no text: of another build, or made up".to_string();
                if self.ended == ATTEMPTS {
                    self.broken = Some(why.clone());
                }
                Err(why)
            }
        }
    }

    fn make(&mut self, frame: &[u8]) -> Option<String> {
        let len = u8::try_from(frame.len()).ok()?;
        let maker = match &mut self.maker {
            Some(maker) => maker,
            none => none.insert(start(&self.image)?),
        };
        maker.frames.write_all(&[len]).ok()?;
        maker.frames.write_all(frame).ok()?;
        maker.frames.flush().ok()?;
        maker.lines.recv_timeout(PATIENCE).ok()
    }
}

fn start(image: &Path) -> Option<Maker> {
    let mut child = Command::new(std::env::current_exe().ok()?)
        .arg("texts")
        .arg(image)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    let frames = child.stdin.take()?;
    let lines = BufReader::new(child.stdout.take()?);
    let (send, receive) = channel();
    thread::spawn(move || {
        for line in lines.lines().map_while(Result::ok) {
            if send.send(line).is_err() {
                return;
            }
        }
    });
    Some(Maker {
        child,
        frames,
        lines: receive,
    })
}

/// A line of the process.
fn read(line: &str) -> Result<Text, String> {
    let value: Value = serde_json::from_str(line).map_err(|error| error.to_string())?;
    let word = |key| value.get(key).and_then(Value::as_str).unwrap_or_default();
    if let Some(problem) = value.get("problem").and_then(Value::as_str) {
        return Err(problem.into());
    }
    Ok(Text {
        severity: match word("severity") {
            "trace" => Severity::Trace,
            "debug" => Severity::Debug,
            "info" => Severity::Info,
            "warn" => Severity::Warn,
            "error" => Severity::Error,
            _ => Severity::Any, // println!
        },
        module: word("module").into(),
        text: word("text").into(),
        problem: None,
    })
}

/// Make texts of the frames of an image, for `sinew log` and `sinew record`.
#[derive(Debug, clap::Args)]
pub struct Args {
    image: PathBuf,
}

/// The process.
pub fn run(args: Args) -> Result<(), Failure> {
    let loaded = load(&args.image);
    let most = getrlimit(Resource::As).maximum;
    let limit = Rlimit {
        current: Some(MEMORY.saturating_add(used())),
        maximum: most,
    };
    let none = Rlimit {
        current: Some(0),
        maximum: Some(0),
    };
    setrlimit(Resource::As, limit)
        .and_then(|()| setrlimit(Resource::Core, none))
        .map_err(|error| Failure::internal("cannot bound the memory", error))?;
    let mut input = std::io::stdin().lock();
    let (mut len, mut frame) = ([0], [0; u8::MAX as usize]);
    // Its end is ours.
    while input.read_exact(&mut len).is_ok() {
        let frame = frame.get_mut(..usize::from(len[0])).unwrap_or_default();
        if input.read_exact(frame).is_err() {
            break;
        }
        let answer = match &loaded {
            Ok(image) => image.text(frame),
            Err(why) => json!({ "problem": why }),
        };
        if !output::line_of_many(&answer.to_string())? {
            break;
        }
    }
    Ok(())
}

/// Bytes of address space that this process has, as far as it says.
fn used() -> u64 {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages: u64 = pages
        .split(' ')
        .next()
        .and_then(|count| count.parse().ok())
        .unwrap_or_default();
    pages.saturating_mul(rustix::param::page_size() as u64)
}

/// The texts of an image.
struct Image {
    table: Table,
    /// Where each text is in the source; none without the line tables of a compiler.
    locations: Locations,
}

fn load(image: &Path) -> Result<Image, String> {
    let elf = std::fs::read(image).map_err(|error| error.to_string())?;
    let table = Table::parse(&elf).map_err(|error| error.to_string())?;
    let table = table.ok_or("it was built without defmt")?;
    let locations = table.get_locations(&elf).unwrap_or_default();
    Ok(Image { table, locations })
}

impl Image {
    fn text(&self, bytes: &[u8]) -> Value {
        let frame = match self.table.decode(bytes) {
            Ok((frame, used)) if used == bytes.len() => frame,
            Ok(_) => return json!({ "problem": "longer than its text: of another build" }),
            Err(DecodeError::UnexpectedEof) => {
                return json!({ "problem": "shorter than its text: cut off, or of another build" });
            }
            Err(DecodeError::Malformed) => {
                return json!({ "problem": "no text: of another build, or made up" });
            }
        };
        let location = self.locations.get(&frame.index());
        json!({
            "severity": frame.level().map_or("", |level| level.as_str()),
            "module": location.map_or("", |location| location.module.as_str()),
            "text": frame.display_message().to_string(),
        })
    }
}
