//! Any message, for tests that treat all alike. The differential tests and the fuzz target use it too.

use sinew::pubsub::codec::scouting::{self, Hello, Scout};
use sinew::pubsub::codec::transport::{self, Close, Fragment, Frame, Init, Join, KeepAlive, Open};
use sinew::pubsub::codec::{
    CodecError, Declare, Decode, Interest, Oam, Push, Reader, Request, Response, ResponseFinal,
    Writer, id_of, network,
};

/// Any message that can stand in a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Message<'p> {
    Oam(Oam<'p>),
    Init(Init<'p>),
    Open(Open<'p>),
    Close(Close),
    KeepAlive(KeepAlive),
    Frame(Frame),
    Fragment(Fragment<'p>),
    Join(Join),
    Push(Push<'p>),
    Request(Request<'p>),
    Response(Response<'p>),
    ResponseFinal(ResponseFinal),
    Interest(Interest<'p>),
    Declare(Declare<'p>),
}

impl<'p> Message<'p> {
    /// The next message of a batch.
    pub fn decode(r: &mut Reader<'p>) -> Result<Self, CodecError> {
        let header = r.byte()?;
        Ok(match id_of(header) {
            transport::OAM | network::OAM => Message::Oam(Oam::decode(header, r)?),
            transport::INIT => Message::Init(Init::decode(header, r)?),
            transport::OPEN => Message::Open(Open::decode(header, r)?),
            transport::CLOSE => Message::Close(Close::decode(header, r)?),
            transport::KEEP_ALIVE => Message::KeepAlive(KeepAlive::decode(header, r)?),
            transport::FRAME => Message::Frame(Frame::decode(header, r)?),
            transport::FRAGMENT => Message::Fragment(Fragment::decode(header, r)?),
            transport::JOIN => Message::Join(Join::decode(header, r)?),
            network::PUSH => Message::Push(Push::decode(header, r)?),
            network::REQUEST => Message::Request(Request::decode(header, r)?),
            network::RESPONSE => Message::Response(Response::decode(header, r)?),
            network::RESPONSE_FINAL => Message::ResponseFinal(ResponseFinal::decode(header, r)?),
            network::INTEREST => Message::Interest(Interest::decode(header, r)?),
            network::DECLARE => Message::Declare(Declare::decode(header, r)?),
            _ => return Err(CodecError::Unknown),
        })
    }

    /// Writes it.
    pub fn encode(&self, w: &mut Writer<'_>) {
        match self {
            Message::Oam(m) => m.encode(w),
            Message::Init(m) => m.encode(w),
            Message::Open(m) => m.encode(w),
            Message::Close(m) => m.encode(w),
            Message::KeepAlive(m) => m.encode(w),
            Message::Frame(m) => m.encode(w),
            Message::Fragment(m) => m.encode(w),
            Message::Join(m) => m.encode(w),
            Message::Push(m) => m.encode(w),
            Message::Request(m) => m.encode(w),
            Message::Response(m) => m.encode(w),
            Message::ResponseFinal(m) => m.encode(w),
            Message::Interest(m) => m.encode(w),
            Message::Declare(m) => m.encode(w),
        }
    }

    /// All messages of a batch.
    pub fn batch(bytes: &'p [u8]) -> Result<Vec<Self>, CodecError> {
        let mut r = Reader::new(bytes);
        let mut messages = Vec::new();
        while !r.is_empty() {
            messages.push(Message::decode(&mut r)?);
        }
        Ok(messages)
    }

    /// Its bytes.
    pub fn bytes(&self) -> Vec<u8> {
        written(|w| self.encode(w))
    }
}

/// Any datagram of scouting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Datagram<'p> {
    Scout(Scout),
    Hello(Hello<'p>),
}

impl<'p> Datagram<'p> {
    /// Reads it.
    pub fn decode(r: &mut Reader<'p>) -> Result<Self, CodecError> {
        let header = r.byte()?;
        Ok(match id_of(header) {
            scouting::SCOUT => Datagram::Scout(Scout::decode(header, r)?),
            scouting::HELLO => Datagram::Hello(Hello::decode(header, r)?),
            _ => return Err(CodecError::Unknown),
        })
    }

    /// Its bytes.
    pub fn bytes(&self) -> Vec<u8> {
        written(|w| match self {
            Datagram::Scout(m) => m.encode(w),
            Datagram::Hello(m) => m.encode(w),
        })
    }
}

/// What this writes.
pub fn written(write: impl Fn(&mut Writer<'_>)) -> Vec<u8> {
    let mut place = vec![0; 256];
    loop {
        let mut w = Writer::new(&mut place);
        write(&mut w);
        match w.finish() {
            Some(len) => {
                place.truncate(len);
                return place;
            }
            None if place.len() < 1 << 24 => place = vec![0; place.len() * 4],
            None => panic!("this has no form on the wire"),
        }
    }
}
