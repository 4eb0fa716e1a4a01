//! A firmware update that survives lost answers, lost links and restarts of the tool.

use std::error::Error;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use sinew::rpc::Direct;
use sinew_io::reconnect::{self, Backoff};
use sinew_io::{Endpoint, Server};

sinew::include_proto!("update");

// ANCHOR: service
use sinew::rpc::{Cx, Responder, Status, Stop};
use sinew::wire::crc32::Crc32;
use update::{BeginRequest, Chunk, CommitRequest, CommitResponse, Progress, update as service};

/// The bank that is not running.
pub trait Flash {
    /// Its size in bytes.
    fn size(&self) -> u32;
    fn erase(&mut self);
    fn program(&mut self, offset: u32, data: &[u8]);
    /// The CRC-32 of its first bytes, read back.
    fn crc(&self, size: u32) -> u32;
    /// Lets the next reset start it.
    fn activate(&mut self);
}

pub struct Updater<F> {
    flash: F,
    /// The update under way.
    image: Option<BeginRequest>,
    /// How much of it is written.
    next: u32,
}

impl<F: Flash> Updater<F> {
    pub fn new(flash: F) -> Self {
        Updater {
            flash,
            image: None,
            next: 0,
        }
    }
}

impl<F: Flash> service::Update for Updater<F> {
    fn begin(
        &mut self,
        request: &BeginRequest,
        _: Cx<'_, Responder<Progress>>,
    ) -> Result<Progress, Stop> {
        if request.size == 0 || request.size > self.flash.size() {
            return Err(Status::OUT_OF_RANGE.into());
        }
        if self.image.as_ref() != Some(request) {
            self.flash.erase();
            self.image = Some(*request);
            self.next = 0;
        }
        Ok(Progress { next: self.next })
    }

    fn write(&mut self, chunk: &Chunk, _: Cx<'_, Responder<Progress>>) -> Result<Progress, Stop> {
        let image = self.image.as_ref().ok_or(Status::FAILED_PRECONDITION)?;
        let end = chunk.offset.checked_add(chunk.data.len() as u32);
        let end = end.filter(|end| *end <= image.size);
        let end = end.ok_or(Status::OUT_OF_RANGE)?;
        // Flash is written once: a chunk whose answer was lost comes again.
        if chunk.offset == self.next {
            self.flash.program(chunk.offset, &chunk.data);
            self.next = end;
        }
        Ok(Progress { next: self.next })
    }

    fn commit(
        &mut self,
        _: &CommitRequest,
        _: Cx<'_, Responder<CommitResponse>>,
    ) -> Result<CommitResponse, Stop> {
        let image = self.image.as_ref().ok_or(Status::FAILED_PRECONDITION)?;
        if self.next != image.size {
            return Err(Status::FAILED_PRECONDITION.into());
        }
        if self.flash.crc(image.size) != image.crc {
            self.image = None; // from the beginning
            return Err(Status::DATA_LOSS.into());
        }
        self.flash.activate();
        Ok(CommitResponse {})
    }
}
// ANCHOR_END: service

// ANCHOR: client
use sinew::rpc::CallError;

/// Bytes of a chunk: the capacity of its field.
const CHUNK: usize = 256;

/// Brings an image to a device. `progress` is told how much is there.
pub fn send<R: service::Reach>(
    device: &mut service::Client<R>,
    image: &[u8],
    mut progress: impl FnMut(u32),
) -> Result<(), CallError> {
    let begin = BeginRequest {
        size: image.len() as u32,
        crc: Crc32::new().update(image).finish(),
    };
    let mut next = device.begin(&begin)?.next;
    while let Some(rest) = image.get(next as usize..).filter(|rest| !rest.is_empty()) {
        let chunk = Chunk {
            offset: next,
            data: rest[..rest.len().min(CHUNK)].try_into()?,
        };
        next = match device.write(&chunk) {
            Ok(progress) => progress.next,
            // The link was lost, or the device started again: it says how far it got.
            Err(
                CallError::Closed
                | CallError::DeadlineExceeded
                | CallError::Status(Status::FAILED_PRECONDITION),
            ) => device.begin(&begin)?.next,
            Err(error) => return Err(error),
        };
        progress(next);
    }
    device.commit(&CommitRequest {})?;
    Ok(())
}
// ANCHOR_END: client

/// A bank in memory, which outlives the program that serves it.
#[derive(Clone, Default)]
struct Bank(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    bytes: Vec<u8>,
    erased: u32,
    is_active: bool,
}

impl Flash for Bank {
    fn size(&self) -> u32 {
        100_000
    }

    fn erase(&mut self) {
        let mut state = self.0.lock().unwrap();
        state.bytes.clear();
        state.erased += 1;
    }

    fn program(&mut self, offset: u32, data: &[u8]) {
        let mut state = self.0.lock().unwrap();
        assert_eq!(
            state.bytes.len(),
            offset as usize,
            "written twice, or with a gap"
        );
        state.bytes.extend_from_slice(data);
    }

    fn crc(&self, size: u32) -> u32 {
        let state = self.0.lock().unwrap();
        Crc32::new().update(&state.bytes[..size as usize]).finish()
    }

    fn activate(&mut self) {
        self.0.lock().unwrap().is_active = true;
    }
}

fn image(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| (at * 7 + at / 256) as u8).collect()
}

#[test]
fn an_update_goes_on_after_the_link_was_lost_and_the_device_started_again()
-> Result<(), Box<dyn Error>> {
    let bank = Bank::default();
    let folder = std::env::temp_dir().join(format!("sinew-update-{}", std::process::id()));
    let endpoint: Endpoint = format!("unix:{}", folder.display()).parse()?;
    let serve = |updater| {
        let server: Server<_> = Server::new(service::Serve(updater));
        server
            .listen(&endpoint)
            .map(|listening| (server, listening))
    };
    let mut running = Some(serve(Updater::new(bank.clone()))?);

    let client = reconnect::connect(&endpoint, Backoff::default());
    let mut device = service::Client(client.with_timeout(Duration::from_secs(60)));
    let image = image(10_001);
    let mut told = Vec::new();
    send(&mut device, &image, |next| {
        told.push(next);
        if told.len() == 5 || told.len() == 20 {
            drop(running.take());
            running = Some(serve(Updater::new(bank.clone())).expect("serving again"));
        }
    })?;
    let state = bank.0.lock().unwrap();
    assert_eq!(state.bytes, image);
    assert_eq!(state.erased, 3, "each start of the device begins anew");
    assert!(state.is_active);
    Ok(())
}

#[test]
fn a_chunk_that_is_repeated_is_written_once() -> Result<(), Box<dyn Error>> {
    let bank = Bank::default();
    let mut updater = Updater::new(bank.clone());
    let mut device = service::Client(Direct(&mut updater));
    let begin = BeginRequest { size: 8, crc: 0 };
    assert_eq!(device.begin(&begin)?.next, 0);
    let chunk = Chunk {
        offset: 0,
        data: b"1234".as_slice().try_into()?,
    };
    assert_eq!(device.write(&chunk)?.next, 4);
    assert_eq!(device.write(&chunk)?.next, 4);
    assert_eq!(device.begin(&begin)?.next, 4, "the same update goes on");
    assert_eq!(bank.0.lock().unwrap().bytes, b"1234");
    Ok(())
}

#[test]
fn an_image_that_is_not_whole_or_damaged_is_never_started() -> Result<(), Box<dyn Error>> {
    let bank = Bank::default();
    let mut updater = Updater::new(bank.clone());
    let mut device = service::Client(Direct(&mut updater));
    fn refused<T>(status: Status) -> Result<T, CallError> {
        Err(CallError::Status(status))
    }
    let commit = CommitRequest {};
    assert_eq!(device.commit(&commit), refused(Status::FAILED_PRECONDITION));
    device.begin(&BeginRequest { size: 4, crc: 1 })?;
    assert_eq!(device.commit(&commit), refused(Status::FAILED_PRECONDITION));
    let chunk = |offset| Chunk {
        offset,
        data: b"1234".as_slice().try_into().unwrap(),
    };
    assert_eq!(device.write(&chunk(1)), refused(Status::OUT_OF_RANGE));
    assert_eq!(
        device.write(&chunk(u32::MAX)),
        refused(Status::OUT_OF_RANGE)
    );
    device.write(&chunk(0))?;
    assert_eq!(device.commit(&commit), refused(Status::DATA_LOSS));
    let large = BeginRequest {
        size: 100_001,
        crc: 0,
    };
    assert_eq!(device.begin(&large), refused(Status::OUT_OF_RANGE));
    let empty = BeginRequest { size: 0, crc: 0 };
    assert_eq!(device.begin(&empty), refused(Status::OUT_OF_RANGE));
    assert!(!bank.0.lock().unwrap().is_active);
    Ok(())
}
