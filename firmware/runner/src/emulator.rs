//! A board in the emulator, with its UART on a socket, or with memory and a doorbell that this process
//! shares.

use std::io::{Read, Write};
use std::mem::replace;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

use crate::image::Image;
use crate::machine::{AN385, Machine};
use crate::{Result, named};

/// No answer of the emulator takes this long on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(10);
/// No image that ends by itself runs this long.
const LONGEST: Duration = Duration::from_secs(100);
/// The emulator ends after this, even where nobody is left to stop it.
const LIMIT_S: &str = "120";
/// How much below the start of the stack is looked at, in bytes.
const STACK_LOOK: u64 = 16384;
const UNTOUCHED: u8 = 0xa5;

/// Fails with a name where the emulator is missing.
pub fn check(machine: Machine) -> Result<()> {
    let qemu = machine.qemu()?;
    check_program(qemu.program, qemu.package)
}

/// Fails with the names of both where the program of this package is missing.
pub fn check_program(program: &str, package: &str) -> Result<()> {
    let found = Command::new(program)
        .arg("--version")
        .stdout(Stdio::null())
        .status();
    match found {
        Ok(status) if status.success() => Ok(()),
        _ => Err(format!("{program} is missing: apt-get install {package}").into()),
    }
}

/// Where UART0 ends.
enum Uart {
    /// At [`Emulator::uart`].
    Ours,
    /// At this character device of the emulator.
    At(String),
}

/// A running board. It stops when this is dropped.
pub struct Emulator {
    process: Child,
    /// Where it has one.
    uart: Option<UnixStream>,
    monitor: UnixStream,
    /// The monitor's first prompt has been read.
    is_greeted: bool,
    folder: PathBuf,
}

impl Emulator {
    /// Starts the image.
    pub fn start(machine: Machine, image: &Image) -> Result<Emulator> {
        Emulator::start_with(machine, &[image], Uart::Ours, &[])
    }

    /// Starts the image with its UART at this socket, to which anybody may connect.
    pub fn start_listening(image: &Image, uart: &Path) -> Result<Emulator> {
        let at = format!("unix:{},server=on,wait=off", uart.display());
        Emulator::start_with(AN385, &[image], Uart::At(at), &[])
    }

    /// Starts the image with the same time for each instruction.
    pub fn start_counting(machine: Machine, images: &[&Image]) -> Result<Emulator> {
        Emulator::start_with(machine, images, Uart::Ours, machine.counting)
    }

    /// Starts a board with an image for each of its cores.
    pub fn start_cores(machine: Machine, images: &[&Image]) -> Result<Emulator> {
        Emulator::start_with(machine, images, Uart::Ours, &[])
    }

    /// Starts the image with the file as its PSRAM, and with the doorbell at the socket `bell`, to
    /// which anybody may connect, one after another. Its UART0 is connected to nothing.
    pub fn start_sharing(image: &Image, memory: &Path, bell: &Path) -> Result<Emulator> {
        Emulator::share(image, memory, bell, Uart::At("null".to_owned()))
    }

    /// The same, with its UART0 as well.
    pub fn start_with_both(image: &Image, memory: &Path, bell: &Path) -> Result<Emulator> {
        Emulator::share(image, memory, bell, Uart::Ours)
    }

    fn share(image: &Image, memory: &Path, bell: &Path, uart: Uart) -> Result<Emulator> {
        let (memory, bell) = (memory.display(), bell.display());
        let object = format!("memory-backend-file,id=shm,size=16M,share=on,mem-path={memory}");
        let chardev = format!("socket,id=bell,server=on,wait=off,path={bell}");
        let sharing = [
            ["-object", &object],
            ["-machine", "memory-backend=shm"],
            ["-chardev", &chardev],
            ["-serial", "chardev:bell"],
        ];
        Emulator::start_with(AN385, &[image], uart, sharing.as_flattened())
    }

    fn start_with(
        machine: Machine,
        images: &[&Image],
        line: Uart,
        arguments: &[&str],
    ) -> Result<Emulator> {
        static RUNS: AtomicU32 = AtomicU32::new(0);
        let run = RUNS.fetch_add(1, Ordering::Relaxed);
        let folder =
            std::env::temp_dir().join(format!("sinew-firmware-{}-{run}", std::process::id()));
        std::fs::create_dir_all(&folder)?;
        let stack = folder.join("stack");
        std::fs::write(&stack, [UNTOUCHED; STACK_LOOK as usize])?;
        let (uart, monitor) = (folder.join("uart"), folder.join("monitor"));
        let (uart_socket, monitor_socket) =
            (UnixListener::bind(&uart)?, UnixListener::bind(&monitor)?);
        let (serial, has_uart) = match line {
            Uart::Ours => (format!("unix:{}", uart.display()), true),
            Uart::At(place) => (place, false),
        };
        let qemu = machine.qemu()?;
        let mut command = Command::new("timeout");
        command
            .args(["-k", "1", LIMIT_S, qemu.program, "-display", "none"])
            .args(["-M", qemu.name])
            .args(qemu.arguments)
            .args(machine.arguments)
            .args(["-serial", &serial])
            .args(arguments)
            .args(["-monitor", &format!("unix:{}", monitor.display())])
            .stdin(Stdio::null());
        for (core, image) in images.iter().enumerate() {
            let (path, stack) = (image.path.display(), stack.display());
            let bottom = image.stack_top - STACK_LOOK;
            match core {
                0 => command.arg("-kernel").arg(&image.path),
                _ => command.args(["-device", &format!("loader,file={path}")]),
            };
            let fill = format!("loader,file={stack},addr={bottom:#x},force-raw=on");
            command.args(["-device", &fill]);
        }
        let mut process = command.spawn()?;
        let sockets = accept(&monitor_socket, &mut process).and_then(|monitor| {
            let uart = has_uart.then(|| accept(&uart_socket, &mut process));
            Ok((monitor, uart.transpose()?))
        });
        match sockets {
            Ok((monitor, uart)) => Ok(Emulator {
                process,
                uart,
                monitor,
                is_greeted: false,
                folder,
            }),
            Err(error) => {
                kill(&mut process);
                let _ = std::fs::remove_dir_all(&folder);
                let names = images.iter().map(|image| &image.name[..]);
                Err(named(&names.collect::<Vec<_>>().join(" and "))(error))
            }
        }
    }

    /// Fails where the image has ended, which no image that serves does.
    pub fn check_running(&mut self) -> Result<()> {
        match self.process.try_wait()? {
            None => Ok(()),
            Some(status) => Err(format!("the image has ended: {status}").into()),
        }
    }

    /// The other end of the board's UART.
    pub fn uart(&self) -> Result<&UnixStream> {
        self.uart.as_ref().ok_or("this board has no UART".into())
    }

    /// The most stack that the image has used so far, in bytes.
    pub fn stack_used(&mut self, image: &Image) -> Result<u64> {
        let dump = self.folder.join("dump");
        let bottom = image.stack_top - STACK_LOOK;
        // As the first core sees it, whose addresses need not be those of the machine.
        self.command(&format!(
            "memsave {bottom:#x} {STACK_LOOK:#x} \"{}\"",
            dump.display()
        ))?;
        let stack = std::fs::read(dump)?;
        let untouched = stack.iter().take_while(|&&byte| byte == UNTOUCHED).count();
        if untouched == 0 {
            return Err(format!("the stack is deeper than {STACK_LOOK} bytes").into());
        }
        Ok((stack.len() - untouched) as u64)
    }

    /// Resets core and devices, in the middle of whatever they do. Shared memory keeps what it has, and sockets stay
    /// connected. The image may run on for a moment.
    pub fn reset(&mut self) -> Result<()> {
        self.command("system_reset")
    }

    /// Waits until the image has ended, and gives its exit code.
    pub fn wait(mut self) -> Result<i32> {
        let start = Instant::now();
        while start.elapsed() < LONGEST {
            if let Some(status) = self.process.try_wait()? {
                return Ok(status.code().unwrap_or(-1));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Err(format!("the image does not end within {} s", LONGEST.as_secs()).into())
    }

    /// Runs a command of the emulator's monitor and waits until it is done.
    fn command(&mut self, command: &str) -> Result<()> {
        let prompt = b"(qemu) ";
        // The prompt of the start, once, and the one behind the command.
        let prompts = if replace(&mut self.is_greeted, true) {
            1
        } else {
            2
        };
        writeln!(self.monitor, "{command}")?;
        let (mut seen, mut byte) = (Vec::new(), [0]);
        while seen
            .windows(prompt.len())
            .filter(|part| part == prompt)
            .count()
            < prompts
        {
            self.monitor.read_exact(&mut byte)?;
            seen.push(byte[0]);
        }
        Ok(())
    }
}

impl Drop for Emulator {
    fn drop(&mut self) {
        let _ = writeln!(self.monitor, "quit");
        let start = Instant::now();
        while start.elapsed() < PATIENCE && matches!(self.process.try_wait(), Ok(None)) {
            std::thread::sleep(Duration::from_millis(5));
        }
        kill(&mut self.process);
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// Ends the emulator if it has not ended, and `timeout` before it, which has made both a group of processes.
fn kill(process: &mut Child) {
    if let Ok(None) = process.try_wait() {
        let _ = kill_process_group(Pid::from_child(process), Signal::KILL);
        let _ = process.wait();
    }
}

/// The emulator's connection.
fn accept(socket: &UnixListener, process: &mut Child) -> Result<UnixStream> {
    socket.set_nonblocking(true)?;
    let start = Instant::now();
    loop {
        match socket.accept() {
            Ok((stream, _)) => {
                stream.set_nonblocking(false)?;
                stream.set_read_timeout(Some(PATIENCE))?;
                stream.set_write_timeout(Some(PATIENCE))?;
                return Ok(stream);
            }
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error.into()),
        }
        if let Some(status) = process.try_wait()? {
            return Err(format!("the emulator has ended at its start: {status}").into());
        }
        if start.elapsed() > PATIENCE {
            return Err("the emulator does not connect".into());
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}
