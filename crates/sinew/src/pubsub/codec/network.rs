//! The messages of the network: what stands in a frame, between the two ends and everybody behind them.

use super::query::{Query, Reply, Target};
use super::{Body, CodecError, Entity, Ext, Extensions, Qos, Reader, WireExpr, Writer, id_of};

/// The id of [`Interest`].
pub const INTEREST: u8 = 0x19;
/// The id of [`ResponseFinal`].
pub const RESPONSE_FINAL: u8 = 0x1a;
/// The id of [`Response`].
pub const RESPONSE: u8 = 0x1b;
/// The id of [`Request`].
pub const REQUEST: u8 = 0x1c;
/// The id of [`Push`].
pub const PUSH: u8 = 0x1d;
/// The id of [`Declare`](super::Declare).
pub const DECLARE: u8 = 0x1e;
/// The id of the network's [`Oam`](super::Oam).
pub const OAM: u8 = 0x1f;

/// Whether a message with this header is the network's. A frame ends where one begins that is not.
#[inline]
pub const fn is_network(header: u8) -> bool {
    id_of(header) >= INTEREST
}

/// Routers say with it which of their trees a message follows. Mandatory, and nothing to us.
const NODE_ID: u8 = 0x3 | Ext::NUMBER | Ext::MANDATORY;
const TARGET: u8 = 0x4 | Ext::NUMBER | Ext::MANDATORY;
const BUDGET: u8 = 0x5 | Ext::NUMBER;
const TIMEOUT: u8 = 0x6 | Ext::NUMBER;
const RESPONDER: u8 = 0x3 | Ext::BYTES;

/// Reads the extensions that most messages have.
pub(super) fn qos<'p>(header: u8, r: &mut Reader<'p>) -> Result<Qos, CodecError> {
    let mut qos = Qos::DEFAULT;
    let mut exts = Extensions::of(header);
    while let Some(ext) = exts.next(r)? {
        match ext.id {
            Qos::EXT => qos = Qos::of(&ext),
            NODE_ID => {}
            _ => ext.unknown()?,
        }
    }
    Ok(qos)
}

/// A sample for all who subscribe to its key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Push<'p> {
    /// Its key.
    pub key: WireExpr<'p>,
    /// How it is to be treated.
    pub qos: Qos,
    /// It.
    pub body: Body<'p>,
}

impl<'p> Push<'p> {
    /// A value without options.
    pub const fn put(key: WireExpr<'p>, payload: &'p [u8]) -> Self {
        Push {
            key,
            qos: Qos::DEFAULT,
            body: Body::put(payload),
        }
    }

    /// No value, without options.
    pub const fn del(key: WireExpr<'p>) -> Self {
        Push {
            key,
            qos: Qos::DEFAULT,
            body: Body::del(),
        }
    }

    /// Reads what follows `header`.
    ///
    /// # Errors
    ///
    /// See [`CodecError`].
    #[inline]
    pub fn decode(header: u8, r: &mut Reader<'p>) -> Result<Self, CodecError> {
        let key = WireExpr::decode(header, r)?;
        let qos = if header & super::Z == 0 {
            Qos::DEFAULT
        } else {
            qos(header, r)?
        };
        Ok(Push {
            key,
            qos,
            body: Body::decode(r)?,
        })
    }

    /// Writes it whole, with its header.
    #[inline]
    pub fn encode(&self, w: &mut Writer<'_>) {
        self.encode_head(w, self.body.payload.len());
        if self.body.kind == super::Kind::Put {
            w.bytes(self.body.payload);
        }
    }

    /// Writes all but the payload, of which `len` bytes (at most `u32::MAX`) are to follow a PUT.
    // Nearly every sample has four bytes before its payload: one check, one store.
    #[inline]
    pub fn encode_head(&self, w: &mut Writer<'_>, len: usize) {
        let short = self.key.scope < 0x80 && self.key.suffix.is_empty() && len < 0x80;
        if short && self.qos == Qos::DEFAULT && self.body.is_plain_put() {
            let header = PUSH | self.key.flags();
            w.array([header, self.key.scope as u8, super::body::PUT, len as u8]);
        } else {
            self.encode_long_head(w, len);
        }
    }

    #[inline(never)]
    fn encode_long_head(&self, w: &mut Writer<'_>, len: usize) {
        let mut head = w.head(PUSH | self.key.flags());
        self.key.encode(w);
        self.qos.encode(&mut head, w);
        self.body.encode_head(w, len);
    }
}

/// A question to the queryables of a key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Request<'p> {
    /// Its number, by which the answers find back; of the sender, on this link.
    pub id: u32,
    /// Which keys it is about.
    pub key: WireExpr<'p>,
    /// How it is to be treated.
    pub qos: Qos,
    /// Which queryables it is for.
    pub target: Target,
    /// How many replies are wanted at most; not 0.
    pub budget: Option<u32>,
    /// After how many milliseconds nobody waits for an answer any more; [`u32::MAX`] for more than 49 days.
    pub timeout_ms: Option<u32>,
    /// The question.
    pub query: Query<'p>,
}

impl<'p> Request<'p> {
    /// Reads what follows `header`.
    ///
    /// # Errors
    ///
    /// See [`CodecError`].
    pub fn decode(header: u8, r: &mut Reader<'p>) -> Result<Self, CodecError> {
        let mut request = Request {
            id: r.vle32()?,
            ..Request::default()
        };
        request.key = WireExpr::decode(header, r)?;
        let mut exts = Extensions::of(header);
        while let Some(ext) = exts.next(r)? {
            match ext.id {
                Qos::EXT => request.qos = Qos::of(&ext),
                NODE_ID => {}
                TARGET => request.target = Target::of(&ext)?,
                BUDGET => request.budget = (ext.number != 0).then_some(ext.number),
                TIMEOUT => request.timeout_ms = Some(ext.number),
                _ => ext.unknown()?,
            }
        }
        request.query = Query::decode(r)?;
        Ok(request)
    }

    /// Writes it, with its header.
    pub fn encode(&self, w: &mut Writer<'_>) {
        let mut head = w.head(REQUEST | self.key.flags());
        w.vle32(self.id);
        self.key.encode(w);
        self.qos.encode(&mut head, w);
        if self.target != Target::BestMatching {
            head.number(w, TARGET, self.target as u32);
        }
        if let Some(budget) = self.budget {
            head.number(w, BUDGET, budget);
        }
        if let Some(timeout) = self.timeout_ms {
            head.number(w, TIMEOUT, timeout);
        }
        self.query.encode(w);
    }
}

/// One answer to a [`Request`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Response<'p> {
    /// The request's number.
    pub id: u32,
    /// The key of the sample; that of the request with an error.
    pub key: WireExpr<'p>,
    /// How it is to be treated.
    pub qos: Qos,
    /// Who answers.
    pub responder: Option<Entity>,
    /// The answer.
    pub reply: Reply<'p>,
}

impl<'p> Response<'p> {
    /// Reads what follows `header`.
    ///
    /// # Errors
    ///
    /// See [`CodecError`].
    pub fn decode(header: u8, r: &mut Reader<'p>) -> Result<Self, CodecError> {
        let id = r.vle32()?;
        let key = WireExpr::decode(header, r)?;
        let (mut qos, mut responder) = (Qos::DEFAULT, None);
        let mut exts = Extensions::of(header);
        while let Some(ext) = exts.next(r)? {
            match ext.id {
                Qos::EXT => qos = Qos::of(&ext),
                RESPONDER => responder = Some(Entity::decode(&mut Reader::new(ext.bytes))?),
                _ => ext.unknown()?,
            }
        }
        Ok(Response {
            id,
            key,
            qos,
            responder,
            reply: Reply::decode(r)?,
        })
    }

    /// Writes it whole, with its header.
    pub fn encode(&self, w: &mut Writer<'_>) {
        self.encode_start(w);
        self.reply.encode(w);
    }

    /// Writes all but the payload, of which `len` bytes are to follow unless it is a DEL.
    pub fn encode_head(&self, w: &mut Writer<'_>, len: usize) {
        self.encode_start(w);
        self.reply.encode_head(w, len);
    }

    fn encode_start(&self, w: &mut Writer<'_>) {
        let mut head = w.head(RESPONSE | self.key.flags());
        w.vle32(self.id);
        self.key.encode(w);
        self.qos.encode(&mut head, w);
        if let Some(responder) = &self.responder {
            head.bytes(w, 0x3, responder.len());
            responder.encode(w);
        }
    }
}

/// No more answers will come to a [`Request`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResponseFinal {
    /// The request's number.
    pub id: u32,
    /// How it is to be treated.
    pub qos: Qos,
}

impl ResponseFinal {
    /// Reads what follows `header`.
    ///
    /// # Errors
    ///
    /// See [`CodecError`].
    pub fn decode(header: u8, r: &mut Reader<'_>) -> Result<Self, CodecError> {
        Ok(ResponseFinal {
            id: r.vle32()?,
            qos: qos(header, r)?,
        })
    }

    /// Writes it, with its header.
    pub fn encode(&self, w: &mut Writer<'_>) {
        let mut head = w.head(RESPONSE_FINAL);
        w.vle32(self.id);
        self.qos.encode(&mut head, w);
    }
}

/// Asks for declarations: those that are, those to come, or both; neither ends an earlier interest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Interest<'p> {
    /// Its number, which the answers to it carry; of the sender, on this link.
    pub id: u32,
    /// Those that are now; a final declaration ends them.
    pub current: bool,
    /// Those to come.
    pub future: bool,
    /// Of what, and how: [`KEYS`](Interest::KEYS) and the other constants here.
    pub options: u8,
    /// Only those that meet this key.
    pub key: Option<WireExpr<'p>>,
    /// How it is to be treated.
    pub qos: Qos,
}

/// In the header: those that are now.
const CURRENT: u8 = 0x20;
/// In the header: those to come.
const FUTURE: u8 = 0x40;
/// In the options: a key follows. The bits before and behind it are the flags of the key.
const RESTRICTED: u8 = 0x10;

impl<'p> Interest<'p> {
    /// Declarations of keys.
    pub const KEYS: u8 = 0x01;
    /// Declarations of subscribers.
    pub const SUBSCRIBERS: u8 = 0x02;
    /// Declarations of queryables.
    pub const QUERYABLES: u8 = 0x04;
    /// Declarations of tokens.
    pub const TOKENS: u8 = 0x08;
    /// At most one declaration of each kind is wanted, on the interest's own key.
    pub const AGGREGATE: u8 = 0x80;

    const OPTIONS: u8 = 0x8f;

    /// Reads what follows `header`.
    ///
    /// # Errors
    ///
    /// See [`CodecError`].
    pub fn decode(header: u8, r: &mut Reader<'p>) -> Result<Self, CodecError> {
        let mut interest = Interest {
            id: r.vle32()?,
            current: header & CURRENT != 0,
            future: header & FUTURE != 0,
            ..Interest::default()
        };
        if interest.current || interest.future {
            let options = r.byte()?;
            interest.options = options & Self::OPTIONS;
            if options & RESTRICTED != 0 {
                interest.key = Some(WireExpr::decode(options, r)?);
            }
        }
        interest.qos = qos(header, r)?;
        Ok(interest)
    }

    /// Writes it, with its header.
    pub fn encode(&self, w: &mut Writer<'_>) {
        let current = if self.current { CURRENT } else { 0 };
        let future = if self.future { FUTURE } else { 0 };
        let mut head = w.head(INTEREST | current | future);
        w.vle32(self.id);
        if current | future != 0 {
            let options = self.options & Self::OPTIONS;
            match &self.key {
                Some(key) => {
                    w.byte(options | RESTRICTED | key.flags());
                    key.encode(w);
                }
                None => w.byte(options),
            }
        }
        self.qos.encode(&mut head, w);
    }
}
