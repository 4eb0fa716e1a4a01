//! Runs a target over mutations of its corpus, without a fuzzer: the same inputs on every run.

use std::path::Path;
use std::process::ExitCode;

const MAX_LEN: usize = 512;

/// Runs as many inputs as the first argument says (default: 1,000,000) and prints the count.
///
/// A failing input is printed before the panic of its assertion ends the program.
pub fn main(name: &str, target: fn(&[u8])) -> ExitCode {
    let runs = match std::env::args().nth(1).map(|runs| runs.parse::<u64>()) {
        None => 1_000_000,
        Some(Ok(runs)) => runs,
        Some(Err(_)) => {
            eprintln!("usage: {name} [RUNS]");
            return ExitCode::from(64);
        }
    };
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("corpus")
        .join(name);
    let corpus = match read_corpus(&folder) {
        Ok(corpus) if !corpus.is_empty() => corpus,
        result => {
            eprintln!(
                "{name}: no corpus in {}: {:?}",
                folder.display(),
                result.err()
            );
            return ExitCode::FAILURE;
        }
    };
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    for run in 0..runs {
        // The corpus itself comes first, unchanged.
        let mut input = match corpus.get(run as usize) {
            Some(seed) => seed.clone(),
            None => corpus[random.below(corpus.len())].clone(),
        };
        if run >= corpus.len() as u64 {
            for _ in 0..=random.below(4) {
                mutate(&mut input, &corpus, &mut random);
            }
        }
        let shown = Shown(&input);
        target(&input);
        std::mem::forget(shown);
    }
    println!("{name}: {runs} executions from {} seeds", corpus.len());
    ExitCode::SUCCESS
}

/// Prints the input when a panic drops it.
struct Shown<'a>(&'a [u8]);

impl Drop for Shown<'_> {
    fn drop(&mut self) {
        eprintln!("failing input: {:02x?}", self.0);
    }
}

fn read_corpus(folder: &Path) -> std::io::Result<Vec<Vec<u8>>> {
    let mut paths = std::fs::read_dir(folder)?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<Vec<_>, _>>()?;
    paths.sort();
    paths.into_iter().map(std::fs::read).collect()
}

fn mutate(input: &mut Vec<u8>, corpus: &[Vec<u8>], random: &mut Random) {
    const NOTABLE: [u8; 10] = [0x7e, 0x7d, 0x00, 0x01, 0x7f, 0x80, 0xff, 0x08, 0x2a, 0xa5];
    let at = random.below(input.len() + 1);
    let byte = if random.below(2) == 0 {
        NOTABLE[random.below(NOTABLE.len())]
    } else {
        random.below(256) as u8
    };
    match random.below(6) {
        0 => input.truncate(at),
        1 => input.insert(at, byte),
        2 => {
            let seed = &corpus[random.below(corpus.len())];
            let from = random.below(seed.len() + 1);
            input.splice(at..at, seed[from..].iter().copied());
        }
        3 if at < input.len() => drop(input.remove(at)),
        4 if at < input.len() => input[at] ^= 1 << random.below(8),
        _ if at < input.len() => input[at] = byte,
        _ => input.push(byte),
    }
    input.truncate(MAX_LEN);
}

/// xorshift64: enough to spread inputs, the same everywhere.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        ((self.0 >> 16) % end as u64) as usize
    }
}
