//! One master and several processes on one region: killed, stopped, ended and started again at random
//! moments while every link is busy, and what must hold after each time: exactly the slot of that
//! process is free, the master's wait on it ends, every other link goes on without losing a packet,
//! and the slot can be had again. Then one master and two remotes, started in every order, and each of
//! them killed and started again.
//!
//! How many rounds: `SINEW_ROUNDS` (100). The random numbers: `SINEW_SEED`. The program of the remotes:
//! `SINEW_PEER` (this one), for sides of 32 and 64 bits.

#[cfg(target_os = "linux")]
mod child;
#[cfg(target_os = "linux")]
mod kills;
#[cfg(target_os = "linux")]
mod master;
#[cfg(target_os = "linux")]
mod orders;
#[cfg(target_os = "linux")]
#[path = "../support/random.rs"]
mod random;
#[cfg(target_os = "linux")]
mod remote;
#[cfg(target_os = "linux")]
mod traffic;

#[cfg(target_os = "linux")]
fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.split_first() {
        Some((first, rest)) if first == "remote" => remote::run(rest),
        Some((first, rest)) if first == "master" => master::run(rest),
        // Of a list of tests that is asked for, there is none here.
        _ if arguments.iter().any(|argument| argument == "--list") => {}
        _ => control(),
    }
}

#[cfg(not(target_os = "linux"))]
fn main() {}

#[cfg(target_os = "linux")]
fn control() {
    use std::time::{SystemTime, UNIX_EPOCH};

    let number = |name: &str| std::env::var(name).ok()?.parse::<u64>().ok();
    let rounds = number("SINEW_ROUNDS").unwrap_or(100);
    let time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let seed = number("SINEW_SEED").unwrap_or(time.as_nanos() as u64) | 1;
    println!("seed {seed}");
    let mut random = random::Random(seed);
    kills::run(rounds, &mut random);
    orders::run(rounds.div_ceil(100), &mut random);
}
