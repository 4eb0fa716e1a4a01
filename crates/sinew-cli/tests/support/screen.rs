//! The tool on a terminal: a pseudo-terminal, and an emulator in memory that shows what is written to it.
#![allow(dead_code)] // each test uses its part

use std::fs::File;
use std::io::{Read, Write};
use std::process::{Child, Command, ExitStatus};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use rustix::termios::{Termios, Winsize, tcgetattr, tcsetwinsize};
use vt100::{Cell, Color, Parser};

use crate::support::{pty, start};

/// Before it is sure that nothing comes any more.
const PATIENCE: Duration = Duration::from_secs(60);

/// A running command, and what its terminal shows.
pub struct Screen {
    child: Child,
    master: File,
    /// The other side, as a shell would have it before and after.
    slave: File,
    parser: Arc<Mutex<Parser>>,
}

fn size(rows: u16, columns: u16) -> Winsize {
    Winsize {
        ws_row: rows,
        ws_col: columns,
        ws_xpixel: 0,
        ws_ypixel: 0,
    }
}

impl Screen {
    /// Starts a command on a terminal of its own.
    pub fn start(command: &Command, rows: u16, columns: u16) -> Screen {
        let (master, path) = pty();
        tcsetwinsize(&master, size(rows, columns)).unwrap();
        let slave = File::options().read(true).write(true).open(path).unwrap();
        // A session of its own, with the terminal: what the command asks of /dev/tty is asked of this one.
        let mut guarded = Command::new("setsid");
        guarded
            .args(["--ctty", "--wait"])
            .arg(command.get_program())
            .args(command.get_args())
            .env("TERM", "xterm-256color")
            .stdin(slave.try_clone().unwrap())
            .stdout(slave.try_clone().unwrap())
            .stderr(slave.try_clone().unwrap());
        if let Some(folder) = command.get_current_dir() {
            guarded.current_dir(folder);
        }
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => guarded.env(name, value),
                None => guarded.env_remove(name),
            };
        }
        let child = start(&mut guarded);
        let parser = Arc::new(Mutex::new(Parser::new(
            rows.try_into().unwrap(),
            columns.try_into().unwrap(),
            0,
        )));
        let (shown, mut from) = (parser.clone(), File::from(master.try_clone().unwrap()));
        thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = from.read(&mut bytes) {
                shown.lock().unwrap().process(&bytes[..count]);
            }
        });
        Screen {
            child,
            master: master.into(),
            slave,
            parser,
        }
    }

    /// What is shown.
    pub fn text(&self) -> String {
        self.parser.lock().unwrap().screen().contents()
    }

    /// Waits until it shows what is wanted.
    pub fn wait(&self, what: impl Fn(&str) -> bool) -> String {
        let start = Instant::now();
        loop {
            let text = self.text();
            if what(&text) {
                return text;
            }
            assert!(start.elapsed() < PATIENCE, "it shows\n{text}");
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// The cells, row by row, of a moment at which it shows what is wanted.
    pub fn cells_when(&self, what: impl Fn(&str) -> bool) -> Vec<Vec<Cell>> {
        let start = Instant::now();
        loop {
            let parser = self.parser.lock().unwrap();
            let text = parser.screen().contents();
            if what(&text) {
                let (rows, columns) = parser.screen().size();
                let cell = |row, column| parser.screen().cell(row, column).unwrap().clone();
                let row = |row| (0..columns.get()).map(|column| cell(row, column)).collect();
                return (0..rows.get()).map(row).collect();
            }
            drop(parser);
            assert!(start.elapsed() < PATIENCE, "it shows\n{text}");
            thread::sleep(Duration::from_millis(5));
        }
    }

    pub fn resize(&self, rows: u16, columns: u16) {
        let mut parser = self.parser.lock().unwrap();
        parser
            .screen_mut()
            .set_size(rows.try_into().unwrap(), columns.try_into().unwrap());
        tcsetwinsize(&self.master, size(rows, columns)).unwrap();
    }

    /// Types.
    pub fn keys(&self, text: &str) {
        (&self.master).write_all(text.as_bytes()).unwrap();
    }

    /// How the terminal is set.
    pub fn settings(&self) -> Termios {
        tcgetattr(&self.slave).unwrap()
    }

    /// Whether the screen that was there before is hidden, and whether the cursor is.
    pub fn is_taken(&self) -> (bool, bool) {
        let parser = self.parser.lock().unwrap();
        (
            parser.screen().alternate_screen(),
            parser.screen().hide_cursor(),
        )
    }

    /// Ends the command as a closing session would.
    pub fn signal(&self) {
        let group = rustix::termios::tcgetpgrp(&self.master).unwrap();
        rustix::process::kill_process_group(group, rustix::process::Signal::TERM).unwrap();
    }

    /// Waits until the screen of before is there again, with its cursor.
    pub fn wait_free(&self) {
        let start = Instant::now();
        while self.is_taken() != (false, false) {
            assert!(start.elapsed() < PATIENCE, "{:?}", self.is_taken());
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Waits for the end of the command.
    pub fn end(&mut self) -> ExitStatus {
        let start = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(
                start.elapsed() < PATIENCE,
                "it goes on, and shows\n{}",
                self.text()
            );
            thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        self.keys("q");
        let start = Instant::now();
        while start.elapsed() < Duration::from_secs(5) {
            if matches!(self.child.try_wait(), Ok(Some(_))) {
                return;
            }
            thread::sleep(Duration::from_millis(5));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The cells as a picture that reads on light and dark pages.
pub fn svg(cells: &[Vec<Cell>], made_by: &str) -> String {
    const WIDTH: f64 = 8.4;
    const HEIGHT: f64 = 18.0;
    const EDGE: f64 = 14.0;
    let columns = cells.first().map_or(0, Vec::len);
    let (width, height) = (
        columns as f64 * WIDTH + 2.0 * EDGE,
        cells.len() as f64 * HEIGHT + 2.0 * EDGE,
    );
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.1} {height:.1}\" width=\"{width:.0}\" \
         font-family=\"ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace\" font-size=\"14\">\n\
         <desc>made by: {made_by}</desc>\n\
         <rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"#1d2026\"/>\n"
    );
    for (row, cells) in cells.iter().enumerate() {
        let y = EDGE + (row as f64 + 0.75) * HEIGHT;
        for (from, run) in runs(cells) {
            let letters: String = run
                .iter()
                .map(|cell| {
                    if cell.has_contents() {
                        cell.contents()
                    } else {
                        " "
                    }
                })
                .collect();
            if letters.trim().is_empty() {
                continue;
            }
            let cell = &run[0];
            let fill = match (cell.fgcolor(), cell.dim()) {
                (Color::Idx(3 | 11), _) => "#e5c07b",
                (Color::Idx(6 | 14), _) => "#56b6c2",
                (_, true) => "#868c98",
                _ => "#d7dae0",
            };
            let weight = if cell.bold() {
                " font-weight=\"bold\""
            } else {
                ""
            };
            let letters = letters
                .replace('&', "&amp;")
                .replace('<', "&lt;")
                .replace('>', "&gt;");
            text += &format!(
                "<text x=\"{:.1}\" y=\"{y:.1}\" textLength=\"{:.1}\" xml:space=\"preserve\" fill=\"{fill}\"{weight}>{letters}</text>\n",
                EDGE + from as f64 * WIDTH,
                run.len() as f64 * WIDTH,
            );
        }
    }
    text + "</svg>\n"
}

/// Cells that look alike and stand side by side, with the column of the first: words with one blank between them.
fn runs(cells: &[Cell]) -> Vec<(usize, &[Cell])> {
    let look = |cell: &Cell| (cell.fgcolor(), cell.bold(), cell.dim());
    let is_blank = |at: usize| {
        cells
            .get(at)
            .is_none_or(|cell| cell.contents().trim().is_empty())
    };
    let mut runs = Vec::new();
    let mut from = 0;
    while from < cells.len() {
        if is_blank(from) {
            from += 1;
            continue;
        }
        let is_over = |at: &usize| {
            (is_blank(*at) && is_blank(*at + 1)) || look(&cells[*at]) != look(&cells[from])
        };
        let end = (from + 1..cells.len()).find(is_over).unwrap_or(cells.len());
        runs.push((from, &cells[from..end]));
        from = end;
    }
    runs
}
