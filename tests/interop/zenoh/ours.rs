//! Sinew as one side of the matrix: its driver, on any link, opening or accepting.

use std::cell::OnceCell;
use std::collections::HashMap;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use sinew::pubsub::codec::{self, Body, Encoding, Priority, Qos, SourceInfo, Timestamp, Zid};
use sinew::pubsub::keyexpr::KeyExpr;
use sinew::pubsub::session::{Ask, PublisherOptions, Question};
use sinew_io::apart;
use sinew_io::endpoint::{Endpoint, Use};
use sinew_io::pubsub::{self, Options, Overflow, OwnedSample, Responder};

use crate::node::*;

/// How long a session may take to come about.
const PATIENCE: Duration = Duration::from_secs(60);

/// Makes nodes of Sinew.
#[derive(Clone, Copy, Default)]
pub struct Sinew {
    /// How long samples may wait for others to share their batch.
    pub batching: Duration,
    /// The lease, where it is not the usual one.
    pub lease: Option<Duration>,
    /// The largest batch, where it is not what the link takes.
    pub batch_size: Option<u16>,
    /// The id, where it is not a random one.
    pub zid: Option<Zid>,
}

impl Sinew {
    fn options(self, options: Options) -> Options {
        Options {
            batching: self.batching,
            lease: self.lease.unwrap_or(options.lease),
            batch_size: self.batch_size.unwrap_or(options.batch_size),
            zid: self.zid,
            ..options
        }
    }

    /// A client of the router that listens there.
    pub fn client_at(self, router: &At) -> Result<Ours, Failure> {
        self.open(router, Options::client())
    }

    /// A peer of the peer that listens there.
    pub fn peer_at(self, peer: &At) -> Result<Ours, Failure> {
        self.open(peer, Options::peer())
    }

    fn open(self, at: &At, options: Options) -> Result<Ours, Failure> {
        let node = pubsub::open(&endpoint(at)?, self.options(options));
        node.wait_open(PATIENCE)
            .map_err(|error| error.to_string())?;
        Ok(Ours::new(OnceCell::from(node), None))
    }
}

fn endpoint(at: &At) -> Result<Endpoint, Failure> {
    Endpoint::parse(&at.sinew(), Use::Batches).map_err(|error| error.to_string())
}

impl Maker for Sinew {
    fn client(&self, router: &At) -> Result<Box<dyn Node>, Failure> {
        Ok(Box::new(self.client_at(router)?))
    }

    fn opens(&self, peer: &At) -> Result<Box<dyn Node>, Failure> {
        Ok(Box::new(self.peer_at(peer)?))
    }

    fn listens(&self, at: &At) -> Result<(Box<dyn Node>, At), Failure> {
        let mut listener = apart::listen(&endpoint(at)?).map_err(|error| error.to_string())?;
        let said = listener.endpoint().to_string();
        let (_, address) = said.split_once(':').ok_or("an endpoint without a kind")?;
        let at = At {
            kind: at.kind,
            address: address.to_owned(),
        };
        let options = self.options(Options::peer());
        let (sender, coming) = channel();
        thread::spawn(move || {
            if let Some(apart) = listener.accept_within(Some(PATIENCE)) {
                let _ = sender.send(pubsub::accept(apart, options));
            }
        });
        Ok((Box::new(Ours::new(OnceCell::new(), Some(coming))), at))
    }
}

/// Everything that was declared under a name. Dropping it undeclares.
#[allow(dead_code, reason = "held to be dropped")]
enum Thing {
    Publisher(pubsub::Publisher),
    Subscriber(pubsub::Subscriber),
    Queryable(pubsub::Queryable),
    /// A thread takes the samples out, until it is told to stop.
    Slow(Sender<()>),
}

/// What a counting subscriber has seen, and the next number of each key.
#[derive(Default)]
struct Count {
    seen: Counted,
    next: HashMap<String, u32>,
}

impl Count {
    fn take(&mut self, key: &str, payload: &[u8]) {
        self.seen.received += 1;
        let Some(number) = payload.first_chunk() else {
            return;
        };
        let number = u32::from_le_bytes(*number);
        if !self.next.contains_key(key) {
            self.next.insert(key.to_owned(), 0);
        }
        let Some(next) = self.next.get_mut(key) else {
            return;
        };
        match number.checked_sub(*next) {
            Some(missing) => {
                self.seen.missing += u64::from(missing);
                *next = number + 1;
            }
            None => self.seen.backwards += 1,
        }
    }
}

/// Responders that are kept until they are released, by queryable.
type Held = Arc<Mutex<HashMap<String, Vec<Responder>>>>;

/// One node of Sinew.
pub struct Ours {
    node: OnceCell<pubsub::Node>,
    /// Where the node comes from when somebody opens a session with it.
    coming: Option<Receiver<pubsub::Node>>,
    things: HashMap<String, Thing>,
    counts: HashMap<String, Arc<Mutex<Count>>>,
    held: Held,
    sender: Sender<Event>,
    events: Receiver<Event>,
}

impl Ours {
    fn new(node: OnceCell<pubsub::Node>, coming: Option<Receiver<pubsub::Node>>) -> Self {
        let (sender, events) = channel();
        Self {
            node,
            coming,
            things: HashMap::new(),
            counts: HashMap::new(),
            held: Held::default(),
            sender,
            events,
        }
    }

    /// The node, when its session is open.
    pub fn node(&self) -> Result<&pubsub::Node, Failure> {
        if let Some(node) = self.node.get() {
            return Ok(node);
        }
        let coming = self.coming.as_ref().ok_or("closed")?;
        let node = coming
            .recv_timeout(PATIENCE)
            .map_err(|_| format!("nobody came in {PATIENCE:?}"))?;
        node.wait_open(PATIENCE)
            .map_err(|error| error.to_string())?;
        Ok(self.node.get_or_init(|| node))
    }

    fn own_zid(&self) -> Result<Zid, Failure> {
        Ok(self.node()?.zid())
    }

    fn source(&self, with: &With) -> Result<Option<SourceInfo>, Failure> {
        let Some(sn) = with.source else {
            return Ok(None);
        };
        let zid = self.own_zid()?;
        Ok(Some(SourceInfo { zid, entity: 1, sn }))
    }

    fn publish(&self, id: &str, body: Body<'_>, with: &With) -> Result<(), Failure> {
        let publisher = self.its_publisher(id)?;
        let source = self.source(with)?;
        let body = Body {
            source,
            ..filled(body, with)
        };
        publisher.publish(&body).map_err(words).map(drop)
    }

    fn its_publisher(&self, id: &str) -> Result<&pubsub::Publisher, Failure> {
        match self.things.get(id) {
            Some(Thing::Publisher(publisher)) => Ok(publisher),
            _ => Err(format!("no publisher {id}")),
        }
    }
}

fn words(error: impl std::fmt::Display) -> Failure {
    error.to_string()
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn qos(quality: &Quality) -> Qos {
    Qos::DEFAULT
        .with_priority(Priority::of(quality.priority))
        .with_blocking(quality.block)
        .with_express(quality.express)
}

fn filled<'a>(body: Body<'a>, with: &'a With) -> Body<'a> {
    Body {
        encoding: Encoding::parse(&with.encoding),
        attachment: with.attachment.as_deref(),
        timestamp: with.timestamp.as_ref().and_then(|(time, id)| {
            Some(Timestamp {
                time: *time,
                id: Zid::new(id)?,
            })
        }),
        ..body
    }
}

fn source_of(info: SourceInfo) -> Source {
    Source {
        zid: info.zid.to_string(),
        entity: info.entity,
        number: info.sn,
    }
}

fn sample_of(sample: &OwnedSample) -> Sample {
    Sample {
        key: sample.key.clone(),
        delete: sample.kind == codec::Kind::Del,
        payload: Seen::of(&sample.payload),
        encoding: sample.encoding.clone(),
        attachment: sample.attachment.clone(),
        timestamp: sample.timestamp.map(|stamp| {
            let mut id = [0; 16];
            let bytes = stamp.id.as_bytes();
            id[..bytes.len()].copy_from_slice(bytes);
            (stamp.time, id.to_vec())
        }),
        quality: Quality {
            priority: sample.qos.priority() as u8,
            block: sample.qos.is_blocking(),
            express: sample.qos.is_express(),
        },
        source: sample.source.map(source_of),
    }
}

/// How Zenoh asks for replies on keys that its query does not match.
const ANY_KEY: &str = "_anyke";

fn query_of(question: &Question<'_>) -> Query {
    let query = &question.query;
    Query {
        key: question.key.to_owned(),
        parameters: query.parameters.to_owned(),
        payload: query.body.map(|(_, payload)| Seen::of(payload)),
        encoding: query.body.map(|(encoding, _)| encoding.to_string()),
        attachment: query.attachment.map(<[u8]>::to_vec),
        source: query.source.map(source_of),
        any_key: query.parameters.split(';').any(|pair| pair == ANY_KEY),
    }
}

fn respond(
    responder: &Responder,
    question: &Question<'_>,
    answer: &Answer,
) -> Result<(), pubsub::ReplyError> {
    let key = answer.key.as_deref().unwrap_or(question.key);
    match &answer.what {
        What::Put(payload) => responder.reply_on(key, &filled(Body::put(payload), &answer.with)),
        What::Echo => {
            let payload = question.query.body.map(|(_, payload)| payload);
            let body = Body::put(payload.unwrap_or_default());
            responder.reply_on(key, &filled(body, &answer.with))
        }
        What::Delete => responder.reply_on(key, &filled(Body::del(), &answer.with)),
        What::Error(payload) => responder.error(Encoding::parse(&answer.with.encoding), payload),
    }
}

impl Node for Ours {
    fn zid(&self) -> String {
        self.own_zid()
            .map_or_else(|error| error, |zid| zid.to_string())
    }

    fn subscribe(&mut self, id: &str, key: &str) -> Result<(), Failure> {
        let (sender, name) = (self.sender.clone(), id.to_owned());
        let subscriber = self.node()?.subscriber(key, move |sample| {
            let what = Happened::Sample(sample_of(&sample.into()));
            let id = name.clone();
            let _ = sender.send(Event { id, what });
        });
        let thing = Thing::Subscriber(subscriber.map_err(words)?);
        self.things.insert(id.to_owned(), thing);
        Ok(())
    }

    fn count(&mut self, id: &str, key: &str, pause: Duration) -> Result<(), Failure> {
        let count = Arc::<Mutex<Count>>::default();
        self.counts.insert(id.to_owned(), count.clone());
        let node = self.node()?;
        let thing = if pause.is_zero() {
            let subscriber = node.subscriber(key, move |sample| {
                lock(&count).take(sample.key, sample.body.payload);
            });
            Thing::Subscriber(subscriber.map_err(words)?)
        } else {
            // Its queue is short, so that the link feels it.
            let samples = node.samples(key, 16, Overflow::Wait).map_err(words)?;
            let (stop, stopped) = channel();
            thread::spawn(move || {
                while matches!(
                    stopped.try_recv(),
                    Err(std::sync::mpsc::TryRecvError::Empty)
                ) {
                    let Some(sample) = samples.next_within(Some(Duration::from_millis(20))) else {
                        continue;
                    };
                    thread::sleep(pause);
                    lock(&count).take(&sample.key, &sample.payload);
                }
            });
            Thing::Slow(stop)
        };
        self.things.insert(id.to_owned(), thing);
        Ok(())
    }

    fn counted(&mut self, id: &str) -> Result<Counted, Failure> {
        let count = self.counts.get(id).ok_or(format!("no subscriber {id}"))?;
        Ok(lock(count).seen)
    }

    fn publisher(
        &mut self,
        id: &str,
        key: &str,
        quality: &Quality,
        reliable: bool,
    ) -> Result<(), Failure> {
        let options = PublisherOptions {
            qos: qos(quality),
            reliable,
            filter: true,
        };
        let publisher = self.node()?.publisher_with(key, options).map_err(words)?;
        self.things
            .insert(id.to_owned(), Thing::Publisher(publisher));
        Ok(())
    }

    fn put(&mut self, id: &str, payload: &[u8], with: &With) -> Result<(), Failure> {
        self.publish(id, Body::put(payload), with)
    }

    fn delete(&mut self, id: &str, with: &With) -> Result<(), Failure> {
        self.publish(id, Body::del(), with)
    }

    fn burst(&mut self, ids: &[&str], count: u32, size: usize) -> Result<(), Failure> {
        let publishers: Result<Vec<_>, _> = ids.iter().map(|id| self.its_publisher(id)).collect();
        let publishers = publishers?;
        let mut payload = vec![0; size.max(4)];
        for number in 0..count {
            payload[..4].copy_from_slice(&number.to_le_bytes());
            for publisher in &publishers {
                publisher.put(&payload).map_err(words)?;
            }
        }
        Ok(())
    }

    fn matching(&mut self, id: &str) -> Result<bool, Failure> {
        Ok(self.its_publisher(id)?.is_heard() == Some(true))
    }

    fn queryable(
        &mut self,
        id: &str,
        key: &str,
        complete: bool,
        answers: &[Answer],
        hold: bool,
    ) -> Result<(), Failure> {
        let (sender, name, answers) = (self.sender.clone(), id.to_owned(), answers.to_vec());
        let held = self.held.clone();
        let queryable = self
            .node()?
            .queryable(key, complete, move |question, responder| {
                for answer in &answers {
                    if let Err(error) = respond(&responder, question, answer) {
                        println!("{name}: {error}");
                    }
                }
                if hold {
                    lock(&held).entry(name.clone()).or_default().push(responder);
                }
                // Who sees this may release what is held.
                let what = Happened::Query(query_of(question));
                let id = name.clone();
                let _ = sender.send(Event { id, what });
            });
        let thing = Thing::Queryable(queryable.map_err(words)?);
        self.things.insert(id.to_owned(), thing);
        Ok(())
    }

    fn release(&mut self, id: &str) -> Result<(), Failure> {
        // Dropped when the lock is free again: the driver takes it too.
        let held = lock(&self.held).remove(id);
        drop(held);
        Ok(())
    }

    fn get(&mut self, id: &str, get: &Get) -> Result<(), Failure> {
        let parameters = match (get.any_key, get.parameters.as_str()) {
            (false, parameters) => parameters.to_owned(),
            (true, "") => ANY_KEY.to_owned(),
            (true, parameters) => format!("{parameters};{ANY_KEY}"),
        };
        let encoding = Encoding::parse(&get.with.encoding);
        let key = KeyExpr::new(&get.key).map_err(words)?;
        let ask = Ask {
            target: match get.target {
                Target::BestMatching => codec::Target::BestMatching,
                Target::All => codec::Target::All,
                Target::AllComplete => codec::Target::AllComplete,
            },
            qos: get.quality.as_ref().map_or(Qos::REQUEST, qos),
            timeout: get.timeout.unwrap_or(NO_TIMEOUT),
            query: codec::Query {
                consolidation: match get.consolidation {
                    Consolidation::Auto => codec::Consolidation::Auto,
                    Consolidation::None => codec::Consolidation::None,
                    Consolidation::Monotonic => codec::Consolidation::Monotonic,
                    Consolidation::Latest => codec::Consolidation::Latest,
                },
                parameters: &parameters,
                source: self.source(&get.with)?,
                body: get.payload.as_deref().map(|payload| (encoding, payload)),
                attachment: get.with.attachment.as_deref(),
            },
            ..Ask::new(key)
        };
        let mut replies = self.node()?.ask(&ask).map_err(words)?;
        let (sender, id) = (self.sender.clone(), id.to_owned());
        thread::spawn(move || {
            let say = |what| {
                let id = id.clone();
                let _ = sender.send(Event { id, what });
            };
            for answer in &mut replies {
                say(Happened::Reply(match answer {
                    pubsub::Answer::Sample(sample) => Reply::Sample(sample_of(&sample)),
                    pubsub::Answer::Error { encoding, payload } => Reply::Error {
                        payload: Seen::of(&payload),
                        encoding,
                    },
                }));
            }
            say(Happened::End);
        });
        Ok(())
    }

    fn undeclare(&mut self, id: &str) -> Result<(), Failure> {
        self.things.remove(id).ok_or(format!("no {id}")).map(drop)
    }

    fn event(&mut self, within: Duration) -> Result<Option<Event>, Failure> {
        match self.events.recv_timeout(within) {
            Ok(event) => Ok(Some(event)),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(error) => Err(error.to_string()),
        }
    }

    fn notes(&self) -> String {
        let Some(node) = self.node.get() else {
            return "no node".into();
        };
        let counts: Vec<String> = node
            .stats()
            .iter()
            .filter(|(_, count)| *count > 0)
            .map(|(name, count)| format!("{name} {count}"))
            .collect();
        format!("{:?}, {}", node.state(), counts.join(", "))
    }

    fn close(self: Box<Self>) -> Result<(), Failure> {
        drop(self);
        Ok(())
    }
}
