//! Starts both sides, and kills, stops and starts them.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rustix::process::{Pid, Signal, kill_process};

use super::Medium;
use super::random::Random;

/// By then both directions move again, or something hangs.
const HANGS: Duration = Duration::from_secs(60);

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

pub fn run() {
    let rounds = number("SINEW_ROUNDS").unwrap_or(200);
    let time = SystemTime::now().duration_since(UNIX_EPOCH);
    let seed = number("SINEW_SEED").unwrap_or(time.unwrap().as_nanos() as u64 | 1);
    let mut random = Random(seed | 1);
    // The same memory again and again is what can go wrong most.
    let shares = [50, 20, 15, 5, 10];
    for (medium, share) in Medium::ALL.into_iter().zip(shares) {
        if std::env::var("SINEW_MEDIUM").is_ok_and(|only| only != medium.name()) {
            continue;
        }
        let begin = Instant::now();
        let mine = (rounds * share).div_ceil(100);
        let counts = Loop::new(medium, &mut random, seed).run(mine);
        let took = begin.elapsed().as_secs_f32();
        println!("{medium:?}: {mine} rounds in {took:.1} s: {counts}, seed {seed}");
    }
}

/// One side, as it is now.
struct Side {
    role: &'static str,
    child: Child,
    life: u64,
    /// The peer's life and the own pairing of which it last said that packets go both ways.
    moving: (u64, u64),
    /// The last own pairing of which it said that it is over.
    over: u64,
    is_stopped: bool,
}

/// What a child says: the life of the child, and a line.
type Said = (u64, String);

struct Loop<'a> {
    medium: Medium,
    path: PathBuf,
    random: &'a mut Random,
    seed: u64,
    lives: u64,
    said: (Sender<Said>, Receiver<Said>),
    sides: Vec<Side>,
    killed: u64,
    early: u64,
    stopped: u64,
    ended: u64,
    /// The longest time that it took for packets to go both ways.
    longest: Duration,
    last: VecDeque<String>,
}

impl Loop<'_> {
    fn new(medium: Medium, random: &mut Random, seed: u64) -> Loop<'_> {
        let name = format!("sinew-loops-{}-{}", std::process::id(), medium.name());
        let path = std::env::temp_dir().join(name);
        if medium.is_region() {
            // Whatever is there.
            let garbage: Vec<u8> = (0..1 << 16).map(|_| random.next() as u8).collect();
            std::fs::write(&path, garbage).unwrap();
        }
        Loop {
            medium,
            path,
            random,
            seed,
            lives: 0,
            said: channel(),
            sides: Vec::new(),
            killed: 0,
            early: 0,
            stopped: 0,
            ended: 0,
            longest: Duration::ZERO,
            last: VecDeque::new(),
        }
    }

    fn run(mut self, rounds: u64) -> String {
        for role in ["first", "second"] {
            let side = self.start(role);
            self.sides.push(side);
        }
        self.wait_until_moving();
        for _ in 0..rounds {
            self.round();
        }
        self.wait_until_moving();
        for at in 0..2 {
            self.end(at);
        }
        let _ = std::fs::remove_file(&self.path);
        format!(
            "{} killed ({} before packets went), {} stopped, {} ended, up again within {:.2} s",
            self.killed,
            self.early,
            self.stopped,
            self.ended,
            self.longest.as_secs_f32()
        )
    }

    fn start(&mut self, role: &'static str) -> Side {
        self.lives += 1;
        let life = self.lives;
        let own = std::env::current_exe().unwrap();
        let program = match (role, std::env::var_os("SINEW_PEER")) {
            ("second", Some(program)) => PathBuf::from(program),
            _ => own,
        };
        let mut child = Command::new(program)
            .args(["peer", &self.medium.name()])
            .arg(Path::new(&self.path))
            .args([role, &life.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let said = self.said.0.clone();
        thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                let _ = said.send((life, line));
            }
        });
        Side {
            role,
            child,
            life,
            moving: (0, 0),
            over: 0,
            is_stopped: false,
        }
    }

    fn round(&mut self) {
        self.sleep(3000);
        let at = self.random.below(2) as usize;
        match self.random.below(20) {
            0 => self.stop(at),
            1 => {
                self.end(at);
                self.sides[at] = self.start(self.sides[at].role);
            }
            2..6 => {
                // Both, in either order.
                self.kill(at);
                self.sleep(1000);
                self.kill(1 - at);
                let first = self.random.below(2) as usize;
                for at in [first, 1 - first] {
                    self.sides[at] = self.start(self.sides[at].role);
                    self.sleep(1000);
                }
            }
            _ => {
                self.kill(at);
                self.sleep(1000);
                self.sides[at] = self.start(self.sides[at].role);
            }
        }
        // Now and then the next event comes before the link is up.
        if self.random.one_in(3) {
            self.early += 1;
        } else {
            self.wait_until_moving();
        }
    }

    /// Up to so many microseconds.
    fn sleep(&mut self, most: u64) {
        thread::sleep(Duration::from_micros(self.random.below(most)));
    }

    fn signal(&self, at: usize, signal: Signal) {
        let pid = Pid::from_child(&self.sides[at].child);
        kill_process(pid, signal).unwrap();
    }

    fn kill(&mut self, at: usize) {
        self.killed += 1;
        self.signal(at, Signal::KILL);
        self.sides[at].child.wait().unwrap();
    }

    /// Until the other side has taken it for dead, and perhaps was started anew.
    fn stop(&mut self, at: usize) {
        self.wait_until_moving();
        self.stopped += 1;
        self.hear();
        let before = self.sides[1 - at].moving.1;
        self.signal(at, Signal::STOP);
        self.sides[at].is_stopped = true;
        self.wait("the silence is not noticed", |it| {
            it.sides[1 - at].over >= before
        });
        if self.random.one_in(3) {
            self.kill(1 - at);
            self.sides[1 - at] = self.start(self.sides[1 - at].role);
            self.sleep(3000);
        } else {
            // Another pairing than before, on the side that went on.
            self.sides[1 - at].moving = (0, before);
        }
        self.signal(at, Signal::CONT);
        self.sides[at].is_stopped = false;
        self.sides[at].moving = (0, 0);
    }

    /// In order.
    fn end(&mut self, at: usize) {
        self.ended += 1;
        drop(self.sides[at].child.stdin.take());
        let begin = Instant::now();
        loop {
            if let Some(status) = self.sides[at].child.try_wait().unwrap() {
                if !status.success() {
                    thread::sleep(Duration::from_millis(50));
                    self.hear();
                    self.fail(&format!("{} ended with {status}", self.sides[at].role));
                }
                return;
            }
            if begin.elapsed() > HANGS {
                self.fail(&format!("{} does not end", self.sides[at].role));
            }
            thread::sleep(Duration::from_millis(1));
        }
    }

    fn wait_until_moving(&mut self) {
        let begin = Instant::now();
        self.wait("packets do not go both ways", |it| {
            let lives = [it.sides[1].life, it.sides[0].life];
            let moves = |(side, peer): (&Side, u64)| side.moving.0 == peer;
            it.sides.iter().zip(lives).all(moves)
        });
        self.longest = self.longest.max(begin.elapsed());
    }

    /// Waits until this is so, while both sides live.
    fn wait(&mut self, hangs: &str, is_so: impl Fn(&Self) -> bool) {
        let begin = Instant::now();
        loop {
            self.hear();
            if is_so(self) {
                return;
            }
            for at in 0..2 {
                let over = self.sides[at].child.try_wait().unwrap();
                if let Some(status) = over {
                    thread::sleep(Duration::from_millis(50));
                    self.hear();
                    self.fail(&format!("{} ended: {status}", self.sides[at].role));
                }
            }
            if begin.elapsed() > HANGS {
                self.fail(hangs);
            }
            thread::sleep(Duration::from_micros(300));
        }
    }

    /// Takes up what the children have said.
    fn hear(&mut self) {
        while let Ok((life, line)) = self.said.1.try_recv() {
            let words: Vec<&str> = line.split(' ').collect();
            let side = self.sides.iter_mut().find(|side| side.life == life);
            match words[..] {
                ["moving", peer, pairing] => {
                    let said = (peer.parse().unwrap(), pairing.parse().unwrap());
                    if let Some(side) = side.filter(|side| said.1 > side.moving.1) {
                        side.moving = said;
                    }
                }
                ["over", pairing] => {
                    if let Some(side) = side {
                        side.over = pairing.parse().unwrap();
                    }
                }
                // Also of one that was killed since.
                _ => self.fail(&format!("life {life}: {line}")),
            }
            self.last.push_back(format!("life {life}: {line}"));
            if self.last.len() > 20 {
                self.last.pop_front();
            }
        }
    }

    fn fail(&mut self, why: &str) -> ! {
        for side in &mut self.sides {
            let _ = side.child.kill();
        }
        for line in &self.last {
            eprintln!("{line}");
        }
        let lives = [self.sides[0].life, self.sides[1].life];
        eprintln!(
            "{:?}, lives {lives:?}, seed {}: {why}",
            self.medium, self.seed
        );
        std::process::exit(1);
    }
}
