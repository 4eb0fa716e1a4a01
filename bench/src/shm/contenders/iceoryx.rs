//! iceoryx2: publish-subscribe each way, zero-copy; its event service when blocking.
//!
//! Set as in its own benchmark (`benchmarks/publish-subscribe`): one publisher, one subscriber, no
//! history, a buffer of one that overflows, the next sample borrowed before the answer is awaited,
//! looking again and again. One way nothing may be lost, so the buffer is deep and does not overflow.

use iceoryx2::port::listener::Listener;
use iceoryx2::port::notifier::Notifier;
use iceoryx2::port::publisher::Publisher;
use iceoryx2::port::subscriber::Subscriber;
use iceoryx2::prelude::*;
use iceoryx2::sample_mut_uninit::SampleMutUninit;
use std::hint::spin_loop;
use std::mem::MaybeUninit;

use crate::Result;
use crate::shm::contender::{End, Opening, Waiting};
use crate::shm::payload::word;

type Variant = ipc::Service;

/// A service each way.
pub struct PublishSubscribe {
    /// Before the ports: they go in this order.
    next: Option<SampleMutUninit<Variant, [MaybeUninit<u64>], ()>>,
    out: Publisher<Variant, [u64], ()>,
    back: Subscriber<Variant, [u64], ()>,
    words: usize,
    bells: Option<(Notifier<Variant>, Listener<Variant>)>,
    _node: Node<Variant>,
}

impl PublishSubscribe {
    fn new(opening: &Opening<'_>, out: &str, back: &str) -> Result<Self> {
        set_log_level(LogLevel::Error);
        let node = NodeBuilder::new()
            .config(&Config::default())
            .signal_handling_mode(SignalHandlingMode::Disabled)
            .create::<Variant>()?;
        let service = |way: &str| {
            let name = ServiceName::new(&format!("{}/{way}", opening.name))?;
            let one_way = opening.depth > 16;
            let service = node
                .service_builder(&name)
                .publish_subscribe::<[u64]>()
                .max_publishers(1)
                .max_subscribers(1)
                .history_size(0)
                .subscriber_max_borrowed_samples(1)
                .subscriber_max_buffer_size(if one_way { opening.depth } else { 1 })
                .enable_safe_overflow(!one_way)
                .open_or_create()?;
            Ok::<_, Box<dyn std::error::Error>>(service)
        };
        let event = |way: &str| {
            let name = ServiceName::new(&format!("{}/bell/{way}", opening.name))?;
            let service = node
                .service_builder(&name)
                .event()
                .max_notifiers(1)
                .max_listeners(1)
                .event_id_max_value(0)
                .open_or_create()?;
            Ok::<_, Box<dyn std::error::Error>>(service)
        };
        let publisher = service(out)?
            .publisher_builder()
            .initial_max_slice_len(opening.size / 8)
            .max_loaned_samples(1)
            .backpressure_strategy(BackpressureStrategy::DiscardData)
            .create()?;
        let subscriber = service(back)?.subscriber_builder().create()?;
        let bells = match opening.waiting {
            Waiting::Busy => None,
            Waiting::Blocking => Some((
                event(out)?.notifier_builder().create()?,
                event(back)?.listener_builder().create()?,
            )),
        };
        Ok(PublishSubscribe {
            next: None,
            out: publisher,
            back: subscriber,
            words: opening.size / 8,
            bells,
            _node: node,
        })
    }
}

impl End for PublishSubscribe {
    const NAME: &'static str = "iceoryx2";
    const NOTE: &'static str = "0.10, ipc, publish-subscribe of u64 slices, loan and send; event service when blocking; batched: bursts, it has no batches";

    fn near(opening: &Opening<'_>) -> Result<Self> {
        PublishSubscribe::new(opening, "there", "back")
    }

    fn far(opening: &Opening<'_>) -> Result<Self> {
        PublishSubscribe::new(opening, "back", "there")
    }

    #[inline]
    fn send(&mut self, seed: u64) -> Result<bool> {
        let sample = match self.next.take() {
            Some(sample) => sample,
            None => self.out.loan_slice_uninit(self.words)?,
        };
        let sample = sample.write_from_fn(|index| word(seed, index));
        let delivered = sample.send()? > 0;
        if let Some((notifier, _)) = &self.bells {
            notifier.notify()?;
        }
        self.next = Some(self.out.loan_slice_uninit(self.words)?);
        Ok(delivered)
    }

    #[inline]
    fn receive(&mut self) -> Result<Option<u64>> {
        let sample = self.back.receive()?;
        Ok(sample.map(|sample| {
            let words = sample.payload().iter();
            words.fold(0, |sum: u64, word| sum.wrapping_add(*word))
        }))
    }

    #[inline]
    fn pause(&mut self) -> Result<()> {
        match &self.bells {
            Some((_, listener)) => drop(listener.blocking_wait(|_| {})?),
            None => spin_loop(),
        }
        Ok(())
    }
}
