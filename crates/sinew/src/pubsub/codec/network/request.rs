//! REQUEST and RESPONSE: a query, and what comes back.

use super::super::{
    Decode, Entity, Ext, Extensions, Qos, Query, Reader, Reply, Target, WireExpr, Writer,
};
use super::{NODE_ID, REQUEST, RESPONSE, RESPONSE_FINAL};

const TARGET: u8 = 0x4 | Ext::NUMBER | Ext::MANDATORY;
const BUDGET: u8 = 0x5 | Ext::NUMBER;
const TIMEOUT: u8 = 0x6 | Ext::NUMBER;
const RESPONDER: u8 = 0x3 | Ext::BYTES;

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

impl<'p> Decode<'p> for Request<'p> {
    fn read(header: u8, r: &mut Reader<'p>) -> Self {
        let mut request = Request {
            id: r.vle32(),
            ..Request::default()
        };
        request.key = WireExpr::read(header, r);
        let mut exts = Extensions::of(header);
        while let Some(ext) = exts.next(r) {
            match ext.id {
                Qos::EXT => request.qos = Qos::of(&ext),
                NODE_ID => {}
                TARGET => request.target = Target::of(&ext, r),
                BUDGET => request.budget = (ext.number != 0).then_some(ext.number),
                TIMEOUT => request.timeout_ms = Some(ext.number),
                _ => ext.unknown(r),
            }
        }
        request.query = Query::read(r);
        request
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
            let part = head.part(w, 0x3);
            responder.encode(w);
            part.end(w);
        }
    }
}

impl<'p> Decode<'p> for Response<'p> {
    fn read(header: u8, r: &mut Reader<'p>) -> Self {
        let id = r.vle32();
        let key = WireExpr::read(header, r);
        let (mut qos, mut responder) = (Qos::DEFAULT, None);
        let mut exts = Extensions::of(header);
        while let Some(ext) = exts.next(r) {
            match ext.id {
                Qos::EXT => qos = Qos::of(&ext),
                RESPONDER => {
                    let mut part = Reader::new(ext.bytes);
                    responder = Some(Entity::read(&mut part));
                    r.fail_as(&part);
                }
                _ => ext.unknown(r),
            }
        }
        let reply = Reply::read(r);
        Response {
            id,
            key,
            qos,
            responder,
            reply,
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
    /// Writes it, with its header.
    pub fn encode(&self, w: &mut Writer<'_>) {
        let mut head = w.head(RESPONSE_FINAL);
        w.vle32(self.id);
        self.qos.encode(&mut head, w);
    }
}

impl<'p> Decode<'p> for ResponseFinal {
    fn read(header: u8, r: &mut Reader<'p>) -> Self {
        let id = r.vle32();
        let mut qos = Qos::DEFAULT;
        let mut exts = Extensions::of(header);
        while let Some(ext) = exts.next(r) {
            match ext.id {
                Qos::EXT => qos = Qos::of(&ext),
                _ => ext.unknown(r),
            }
        }
        ResponseFinal { id, qos }
    }
}
