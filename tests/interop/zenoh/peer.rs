//! Zenoh's own stack in a process of its own: `peer.py`.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::node::*;

/// A command that is not answered in this time has failed. Bursts take the longest.
const PATIENCE: Duration = Duration::from_secs(120);

/// A running `peer.py`; killed when dropped.
pub struct Peer {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<Value>,
    /// Came before the answer to a command.
    waiting: VecDeque<Value>,
    number: u64,
    zid: String,
    at: Vec<At>,
}

impl Peer {
    /// `mode` is router, peer or client; `settings` are lines of Zenoh's configuration, PATH=JSON5.
    pub fn start(
        mode: &str,
        listen: &[At],
        connect: &[At],
        settings: &[&str],
    ) -> Result<Self, Failure> {
        let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
        let python = root.join("build/venv/bin/python");
        if !python.exists() {
            return Err("missing capability: Zenoh for Python (./setup test installs it)".into());
        }
        let mut command = Command::new(python);
        command
            .arg(root.join("tests/interop/zenoh/peer.py"))
            .arg(mode);
        for at in listen {
            command.args(["--listen", &at.zenoh()]);
        }
        for at in connect {
            command.args(["--connect", &at.zenoh()]);
        }
        for setting in settings {
            command.args(["--set", setting]);
        }
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("peer.py does not start: {error}"))?;
        let output = child.stdout.take().ok_or("no output")?;
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                let value = serde_json::from_str(&line)
                    .unwrap_or_else(|_| json!({"event": "garbage", "line": line}));
                if sender.send(value).is_err() {
                    return;
                }
            }
        });
        let mut peer = Self {
            input: child.stdin.take(),
            child,
            lines,
            waiting: VecDeque::new(),
            number: 0,
            zid: String::new(),
            at: Vec::new(),
        };
        let ready = peer.line(Instant::now() + PATIENCE)?;
        let ready = ready.ok_or(format!("peer.py says nothing in {PATIENCE:?}"))?;
        peer.zid = text(&ready, "zid").map_err(|_| format!("not ready: {ready}"))?;
        let at = ready["endpoints"].as_array();
        peer.at = at
            .into_iter()
            .flatten()
            .filter_map(|at| At::from_zenoh(at.as_str()?))
            .collect();
        Ok(peer)
    }

    /// A router that listens there.
    pub fn router(at: &At) -> Result<Self, Failure> {
        Self::start("router", std::slice::from_ref(at), &[], &[])
    }

    /// Where it listens, with the ports that it got.
    pub fn at(&self) -> &[At] {
        &self.at
    }

    /// Ends it without a word, as a crash does.
    pub fn kill(mut self) {
        self.end();
    }

    /// Stops it, so that it reads nothing, until [`Peer::resume`].
    pub fn suspend(&self) {
        self.signal(rustix::process::Signal::STOP);
    }

    pub fn resume(&self) {
        self.signal(rustix::process::Signal::CONT);
    }

    fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_child(&self.child);
        let _ = rustix::process::kill_process(pid, signal);
    }

    fn end(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    fn line(&mut self, until: Instant) -> Result<Option<Value>, Failure> {
        let left = until.saturating_duration_since(Instant::now());
        match self.lines.recv_timeout(left) {
            Ok(line) => Ok(Some(line)),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => Err(format!(
                "peer.py has ended: {:?}",
                self.child.wait().map(|status| status.to_string())
            )),
        }
    }

    /// What a command answers; see the table in `peer.py`.
    pub fn command(&mut self, name: &str, arguments: Value) -> Result<Value, Failure> {
        self.number += 1;
        let mut line = arguments;
        line["do"] = name.into();
        line["n"] = self.number.into();
        let input = self.input.as_mut().ok_or("closed")?;
        writeln!(input, "{line}").map_err(|error| format!("peer.py takes no command: {error}"))?;
        let until = Instant::now() + PATIENCE;
        loop {
            let answer = self.line(until)?.ok_or(format!("{line} is not answered"))?;
            if answer["n"] != self.number {
                self.waiting.push_back(answer);
            } else if answer["event"] == "error" {
                return Err(format!("{line}: {}", answer["error"]));
            } else {
                return Ok(answer);
            }
        }
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.end();
    }
}

impl Node for Peer {
    fn zid(&self) -> String {
        self.zid.clone()
    }

    fn subscribe(&mut self, id: &str, key: &str) -> Result<(), Failure> {
        self.command("subscribe", json!({"id": id, "key": key}))
            .map(drop)
    }

    fn count(&mut self, id: &str, key: &str, pause: Duration) -> Result<(), Failure> {
        let pause = pause.as_secs_f64();
        let arguments = json!({"id": id, "key": key, "count": true, "pause": pause});
        self.command("subscribe", arguments).map(drop)
    }

    fn counted(&mut self, id: &str) -> Result<Counted, Failure> {
        let answer = self.command("counted", json!({"id": id}))?;
        let number = |name: &str| answer[name].as_u64().ok_or(format!("{answer}"));
        Ok(Counted {
            received: number("received")?,
            missing: number("missing")?,
            backwards: number("backwards")?,
        })
    }

    fn publisher(
        &mut self,
        id: &str,
        key: &str,
        quality: &Quality,
        reliable: bool,
    ) -> Result<(), Failure> {
        let mut arguments = json!({"id": id, "key": key, "reliable": reliable});
        set_quality(&mut arguments, quality);
        self.command("publisher", arguments).map(drop)
    }

    fn put(&mut self, id: &str, payload: &[u8], with: &With) -> Result<(), Failure> {
        let mut arguments = json!({"id": id, "payload": hex(payload)});
        set_with(&mut arguments, with);
        self.command("put", arguments).map(drop)
    }

    fn delete(&mut self, id: &str, with: &With) -> Result<(), Failure> {
        let mut arguments = json!({"id": id});
        set_with(&mut arguments, with);
        self.command("delete", arguments).map(drop)
    }

    fn burst(&mut self, ids: &[&str], count: u32, size: usize) -> Result<(), Failure> {
        self.command("burst", json!({"ids": ids, "count": count, "size": size}))
            .map(drop)
    }

    fn matching(&mut self, id: &str) -> Result<bool, Failure> {
        let answer = self.command("matching", json!({"id": id}))?;
        answer["matching"].as_bool().ok_or(format!("{answer}"))
    }

    fn queryable(
        &mut self,
        id: &str,
        key: &str,
        complete: bool,
        answers: &[Answer],
        hold: bool,
    ) -> Result<(), Failure> {
        let answers: Vec<Value> = answers
            .iter()
            .map(|answer| {
                let mut value = match &answer.what {
                    What::Put(payload) => json!({"put": hex(payload)}),
                    What::Echo => json!({"echo": true}),
                    What::Delete => json!({"delete": true}),
                    What::Error(payload) => json!({"error": hex(payload)}),
                };
                if let Some(key) = &answer.key {
                    value["key"] = key.as_str().into();
                }
                set_with(&mut value, &answer.with);
                value
            })
            .collect();
        let arguments = json!({"id": id, "key": key, "complete": complete, "answers": answers,
            "hold": hold});
        self.command("queryable", arguments).map(drop)
    }

    fn release(&mut self, id: &str) -> Result<(), Failure> {
        self.command("release", json!({"id": id})).map(drop)
    }

    fn get(&mut self, id: &str, get: &Get) -> Result<(), Failure> {
        let target = match get.target {
            Target::BestMatching => "BEST_MATCHING",
            Target::All => "ALL",
            Target::AllComplete => "ALL_COMPLETE",
        };
        let consolidation = match get.consolidation {
            Consolidation::Auto => "AUTO",
            Consolidation::None => "NONE",
            Consolidation::Monotonic => "MONOTONIC",
            Consolidation::Latest => "LATEST",
        };
        let mut arguments = json!({"id": id, "key": get.key, "any_key": get.any_key,
            "target": target, "consolidation": consolidation});
        if !get.parameters.is_empty() {
            arguments["parameters"] = get.parameters.as_str().into();
        }
        let timeout = get.timeout.unwrap_or(NO_TIMEOUT);
        arguments["timeout"] = timeout.as_secs_f64().into();
        if let Some(payload) = &get.payload {
            arguments["payload"] = hex(payload).into();
        }
        set_with(&mut arguments, &get.with);
        if let Some(quality) = &get.quality {
            set_quality(&mut arguments, quality);
        }
        self.command("get", arguments).map(drop)
    }

    fn undeclare(&mut self, id: &str) -> Result<(), Failure> {
        self.command("undeclare", json!({"id": id})).map(drop)
    }

    fn event(&mut self, within: Duration) -> Result<Option<Event>, Failure> {
        let line = match self.waiting.pop_front() {
            Some(line) => Some(line),
            None => self.line(Instant::now() + within)?,
        };
        line.map(|line| event(&line).map_err(|missing| format!("{missing} in {line}")))
            .transpose()
    }

    fn close(mut self: Box<Self>) -> Result<(), Failure> {
        let closed = self.command("close", json!({}));
        self.input = None;
        closed.map(drop)
    }
}

/// Makes [`Peer`]s.
pub struct Real;

impl Maker for Real {
    fn client(&self, router: &At) -> Result<Box<dyn Node>, Failure> {
        let peer = Peer::start("client", &[], std::slice::from_ref(router), &[])?;
        Ok(Box::new(peer))
    }

    fn opens(&self, peer: &At) -> Result<Box<dyn Node>, Failure> {
        let peer = Peer::start("peer", &[], std::slice::from_ref(peer), &[])?;
        Ok(Box::new(peer))
    }

    fn listens(&self, at: &At) -> Result<(Box<dyn Node>, At), Failure> {
        let peer = Peer::start("peer", std::slice::from_ref(at), &[], &[])?;
        let at = peer.at().first().cloned().ok_or("it does not listen")?;
        Ok((Box::new(peer), at))
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn set_quality(arguments: &mut Value, quality: &Quality) {
    arguments["priority"] = quality.priority.into();
    arguments["block"] = quality.block.into();
    arguments["express"] = quality.express.into();
}

fn set_with(arguments: &mut Value, with: &With) {
    if !with.encoding.is_empty() {
        arguments["encoding"] = with.encoding.as_str().into();
    }
    if let Some(attachment) = &with.attachment {
        arguments["attachment"] = hex(attachment).into();
    }
    if let Some((time, id)) = &with.timestamp {
        arguments["timestamp"] = json!([time, hex(id)]);
    }
    if let Some(source) = with.source {
        arguments["source"] = source.into();
    }
}

// Reading events: each `Err` names the field that is not as it should be.

fn text(value: &Value, name: &str) -> Result<String, Failure> {
    let text = value[name].as_str().ok_or(format!("no {name}"))?;
    Ok(text.to_owned())
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    text.as_bytes()
        .chunks(2)
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok())
        .collect()
}

fn seen(value: &Value, name: &str) -> Result<Option<Seen>, Failure> {
    let bad = || format!("bad bytes in {name}");
    match &value[name] {
        Value::Null => Ok(None),
        Value::String(text) => Ok(Some(Seen::of(&unhex(text).ok_or_else(bad)?))),
        long => Ok(Some(Seen {
            len: long["len"].as_u64().ok_or_else(bad)? as usize,
            crc: long["crc"].as_u64().ok_or_else(bad)? as u32,
            whole: None,
        })),
    }
}

fn bytes(value: &Value, name: &str) -> Result<Option<Vec<u8>>, Failure> {
    let seen = seen(value, name)?;
    seen.map(|seen| seen.whole.ok_or(format!("{name} is too long")))
        .transpose()
}

fn source(value: &Value) -> Option<Source> {
    let number = |n: usize| u32::try_from(value["source"][n].as_u64()?).ok();
    Some(Source {
        zid: value["source"][0].as_str()?.to_owned(),
        entity: number(1)?,
        number: number(2)?,
    })
}

fn sample(value: &Value) -> Result<Sample, Failure> {
    let flag = |name: &str| value[name].as_bool().ok_or(format!("no {name}"));
    let stamp = &value["timestamp"];
    Ok(Sample {
        key: text(value, "key")?,
        delete: value["kind"] == "delete",
        payload: seen(value, "payload")?.ok_or("no payload")?,
        encoding: text(value, "encoding")?,
        attachment: bytes(value, "attachment")?,
        timestamp: stamp[0].as_u64().zip(stamp[1].as_str().and_then(unhex)),
        quality: Quality {
            priority: value["priority"].as_u64().ok_or("no priority")? as u8,
            block: flag("block")?,
            express: flag("express")?,
        },
        source: source(value),
    })
}

fn event(value: &Value) -> Result<Event, Failure> {
    let what = match value["event"].as_str() {
        Some("sample") => Happened::Sample(sample(value)?),
        Some("query") => Happened::Query(Query {
            key: text(value, "key")?,
            parameters: text(value, "parameters")?,
            payload: seen(value, "payload")?,
            encoding: value["encoding"].as_str().map(str::to_owned),
            attachment: bytes(value, "attachment")?,
            source: source(value),
            any_key: value["any_key"] == true,
        }),
        Some("reply") if value["kind"] == "error" => Happened::Reply(Reply::Error {
            payload: seen(value, "payload")?.ok_or("no payload")?,
            encoding: text(value, "encoding")?,
        }),
        Some("reply") => Happened::Reply(Reply::Sample(sample(value)?)),
        Some("end") => Happened::End,
        _ => return Err("an unknown event".into()),
    };
    Ok(Event {
        id: text(value, "id")?,
        what,
    })
}
