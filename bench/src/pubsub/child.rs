//! A party as a process of its own.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use crate::Result;

/// How long an answer may take beside what the order takes by itself.
const PATIENCE: Duration = Duration::from_secs(20);

/// A child, killed when it is dropped.
pub struct Party {
    child: Child,
    orders: ChildStdin,
    answers: Receiver<String>,
}

impl Party {
    /// Starts it, and waits until it is ready.
    pub fn start(mut command: Command) -> Result<Self> {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let orders = child.stdin.take().ok_or("no standard input")?;
        let output = child.stdout.take().ok_or("no standard output")?;
        let (lines, answers) = channel();
        thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(|line| line.ok()) {
                if lines.send(line).is_err() {
                    return;
                }
            }
        });
        let party = Party {
            child,
            orders,
            answers,
        };
        party.answer(Duration::ZERO)?;
        Ok(party)
    }

    /// Says what to do.
    pub fn order(&mut self, order: &str) -> Result<()> {
        writeln!(self.orders, "{order}")?;
        Ok(self.orders.flush()?)
    }

    /// What it answers to an order that takes so long.
    pub fn answer(&self, time: Duration) -> Result<Answer> {
        let line = self.answers.recv_timeout(time + PATIENCE);
        Ok(Answer(line.map_err(|_| "a party does not answer")?))
    }

    /// Has it do something.
    pub fn ask(&mut self, order: &str, time: Duration) -> Result<Answer> {
        self.order(order)?;
        self.answer(time)
    }
}

impl Drop for Party {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A line of JSON: one object, whose values are numbers.
pub struct Answer(String);

impl Answer {
    /// A number by its name.
    pub fn number(&self, name: &str) -> Result<f64> {
        let inner = self.0.trim().trim_matches(['{', '}']);
        let mut fields = inner.split(',').filter_map(|field| field.split_once(':'));
        let value =
            fields.find_map(|(own, value)| (own.trim_matches('"') == name).then_some(value));
        let value = value.ok_or_else(|| format!("no {name} in {}", self.0))?;
        Ok(value.trim().parse()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_an_answer_are_found_by_their_names() {
        let answer = Answer("{\"rate\":12.5,\"lost\":0}".into());
        assert_eq!(answer.number("rate").unwrap(), 12.5);
        assert_eq!(answer.number("lost").unwrap(), 0.0);
        assert!(answer.number("late").is_err());
    }
}
