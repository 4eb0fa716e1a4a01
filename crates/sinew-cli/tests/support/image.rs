//! The images of `firmware/`, which are built where they are not yet.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Once;
use std::thread;
use std::time::{Duration, Instant};

use super::{socket, start};

/// What takes longer on a loaded machine hangs.
const PATIENCE: Duration = Duration::from_secs(60);

/// The endpoint of an image.
pub fn image(path: &str) -> String {
    static BUILT: Once = Once::new();
    let firmware = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../firmware"));
    BUILT.call_once(|| {
        let make = Command::new("make")
            .arg("-sC")
            .arg(firmware)
            .arg("images")
            .status();
        assert!(make.unwrap().success(), "the images do not build");
    });
    format!("qemu:{}", firmware.join("target").join(path).display())
}

/// The image whose log is frames of `defmt`.
pub fn deferred() -> PathBuf {
    let firmware = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../firmware"));
    let make = Command::new("make")
        .arg("-sC")
        .arg(firmware)
        .arg("deferred")
        .status();
    assert!(make.unwrap().success(), "the image does not build");
    firmware.join("target/thumbv7m-none-eabi/release/deferred")
}

/// One of those that serve calls on a Cortex-M3.
pub fn serving(name: &str) -> String {
    image(&format!("thumbv7m-none-eabi/release/{name}"))
}

/// One of those that are nodes of Zenoh on a Cortex-M3.
pub fn node(name: &str) -> String {
    image(&format!("thumbv7m-none-eabi/node/{name}"))
}

/// A board whose UART is at a socket, for one tool after another. It ends with this.
pub struct Board {
    emulator: Child,
    socket: String,
    /// The file of what it shares; the UART is then the doorbell.
    memory: Option<String>,
}

impl Board {
    /// Starts one of the images that serve calls on a Cortex-M3; `place` is no other test's.
    pub fn start(image: &str, place: &str) -> Board {
        Board::emulate(image, place, None)
    }

    /// The same, of one that shares its memory.
    pub fn share(image: &str, place: &str) -> Board {
        let memory = format!("{}.memory", socket(place));
        let _ = std::fs::remove_file(&memory);
        Board::emulate(image, place, Some(memory))
    }

    fn emulate(image: &str, place: &str, memory: Option<String>) -> Board {
        let socket = socket(place);
        let _ = std::fs::remove_file(&socket);
        let path = serving(image);
        let serial = format!("unix:{socket},server=on,wait=off");
        let mut command = Command::new("timeout");
        command.args(["600", "qemu-system-arm"]);
        match &memory {
            None => command.args(["-M", "mps2-an385"]),
            Some(path) => {
                let shared = "memory-backend-file,id=shared,size=16M,share=on,mem-path=";
                command.args(["-object", &format!("{shared}{path}")]);
                command.args(["-M", "mps2-an385,memory-backend=shared", "-serial", "null"])
            }
        };
        command.args(["-display", "none", "-monitor", "none"]);
        command.args(["-serial", &serial, "-kernel"]);
        command.arg(path.trim_start_matches("qemu:"));
        let emulator = start(command.stdin(Stdio::null()).stderr(Stdio::null()));
        let since = Instant::now();
        while !Path::new(&socket).exists() {
            assert!(since.elapsed() < PATIENCE, "the emulator does not come up");
            thread::sleep(Duration::from_millis(5));
        }
        Board {
            emulator,
            socket,
            memory,
        }
    }

    pub fn endpoint(&self) -> String {
        match &self.memory {
            None => format!("unix:{}", self.socket),
            Some(memory) => format!("shm:{memory}?doorbell={}", self.socket),
        }
    }

    /// Where `sinew shm status` looks at it.
    pub fn memory(&self) -> String {
        format!("shm:{}", self.memory.as_deref().unwrap())
    }
}

impl Drop for Board {
    fn drop(&mut self) {
        // `timeout` ends the emulator when it is asked to end.
        super::terminate(&self.emulator);
        let _ = self.emulator.wait();
        self.memory.iter().for_each(|path| {
            let _ = std::fs::remove_file(path);
        });
    }
}
