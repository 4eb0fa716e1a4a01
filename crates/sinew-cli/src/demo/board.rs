//! The placement on an emulated microcontroller, which shares its memory with this process.
//!
//! The emulator makes a file of the board's PSRAM, and a socket of its second UART, which is the
//! doorbell in both directions.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use indicatif::ProgressBar;
use rustix::process::{Pid, Signal, kill_process};
use sinew_io::{AnyLink, ConnectError, Endpoint};

use super::Outcome;
use super::here::over;

const QEMU: &str = "qemu-system-arm";
/// The board's PSRAM.
const MEMORY: u64 = 16 << 20;
/// The packets of the image.
const MTU: usize = 64;
/// The emulator takes less to start on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(10);
/// It ends after so many seconds, even where nobody is left to stop it.
const LIMIT_S: &str = "600";

/// An image that serves the demo over shared memory, on an emulated Cortex-M3.
pub fn shared_memory(image: &Path, calls: u64, bar: &ProgressBar) -> Result<Outcome, String> {
    let mut board = Board::start(image)?;
    over(board.connect()?, calls, bar)
}

/// A running emulator. It and its files go when this is dropped.
struct Board {
    process: Child,
    folder: PathBuf,
    endpoint: Endpoint,
}

impl Board {
    fn start(image: &Path) -> Result<Board, String> {
        let cause = |error: std::io::Error| error.to_string();
        File::open(image).map_err(|error| format!("{}: {error}", image.display()))?;
        let folder = std::env::temp_dir().join(format!("sinew-board-{}", std::process::id()));
        std::fs::create_dir_all(&folder).map_err(cause)?;
        let (memory, bell) = (folder.join("memory"), folder.join("bell"));
        let (memory_name, bell_name) = (memory.display(), bell.display());
        let endpoint = format!("shm:{memory_name}?mtu={MTU}&doorbell={bell_name}");
        let file = File::create(&memory).map_err(cause)?;
        file.set_len(MEMORY).map_err(cause)?;
        let object = format!("memory-backend-file,id=shm,size=16M,share=on,mem-path={memory_name}");
        let chardev = format!("socket,id=bell,server=on,wait=off,path={bell_name}");
        let process = Command::new("timeout")
            // In the foreground, so that it ends with this process where that is interrupted.
            .args(["--foreground", "-k", "1", LIMIT_S, QEMU])
            .args(["-display", "none", "-monitor", "none", "-serial", "null"])
            .args(["-M", "mps2-an385,memory-backend=shm", "-object", &object])
            .args(["-chardev", &chardev, "-serial", "chardev:bell", "-kernel"])
            .arg(image)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| format!("cannot start {QEMU}: {error}"))?;
        Ok(Board {
            process,
            folder,
            endpoint: endpoint.parse().map_err(|error| format!("{error}"))?,
        })
    }

    /// The emulator makes the socket at its start.
    fn connect(&mut self) -> Result<AnyLink, String> {
        let start = Instant::now();
        loop {
            match sinew_io::open(&self.endpoint) {
                Ok(link) => return Ok(link),
                Err(ConnectError::NoServer(_)) if start.elapsed() < PATIENCE => {}
                Err(error) => return Err(error.to_string()),
            }
            let ended = self.process.try_wait().map_err(|error| error.to_string())?;
            if let Some(status) = ended {
                return Err(format!("{QEMU} has ended at its start: {status}"));
            }
            thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Board {
    fn drop(&mut self) {
        // `timeout` hands this signal on, and would leave the emulator behind if it was killed.
        if let Some(pid) = Pid::from_raw(self.process.id() as i32) {
            let _ = kill_process(pid, Signal::TERM);
        }
        let _ = self.process.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
