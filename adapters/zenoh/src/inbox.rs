//! What subscribers receive into: zenoh's own channels, and one place to wait for all of them.

use std::sync::{Arc, Condvar, Mutex, OnceLock};
use std::time::Instant;

use rtmeter_adapter::{Message, Refused, Reliability};
use zenoh::bytes::ZBytes;
use zenoh::handlers::{
    Callback, FifoChannel, FifoChannelHandler, IntoHandler, RingChannel, RingChannelHandler,
};
use zenoh::sample::Sample;

#[derive(Default)]
struct State {
    woken: bool,
    interrupted: bool,
}

/// What the measured thread waits at.
#[derive(Default)]
pub struct Wakeup {
    state: Mutex<State>,
    changed: Condvar,
}

impl Wakeup {
    pub fn wake(&self) {
        self.state.lock().expect("nothing panics while it holds the lock").woken = true;
        self.changed.notify_one();
    }
    /// One interruption that comes before a wait ends that wait at once.
    pub fn interrupt(&self) {
        self.state.lock().expect("nothing panics while it holds the lock").interrupted = true;
        self.changed.notify_all();
    }
    pub fn take_interruption(&self) -> bool {
        let mut state = self.state.lock().expect("nothing panics while it holds the lock");
        std::mem::take(&mut state.interrupted)
    }
    /// True when it was woken; false when it was interrupted, or the moment has passed.
    pub fn wait(&self, until: Option<Instant>) -> bool {
        let mut state = self.state.lock().expect("nothing panics while it holds the lock");
        loop {
            if std::mem::take(&mut state.interrupted) {
                return false;
            }
            if std::mem::take(&mut state.woken) {
                return true;
            }
            state = match until {
                None => self.changed.wait(state).expect("as above"),
                Some(moment) => {
                    let left = moment.saturating_duration_since(Instant::now());
                    if left.is_zero() {
                        return false;
                    }
                    self.changed.wait_timeout(state, left).expect("as above").0
                }
            };
        }
    }
}

enum Channel<T> {
    Ring(RingChannelHandler<T>),
    Fifo(FifoChannelHandler<T>),
}

/// What is received by the measured thread.
pub trait Received: Sync {
    /// Calls back for what there is; how many there were. Measured path.
    fn take_all(&self) -> Result<usize, Refused>;
}

/// A channel: a ring that drops its oldest, or a queue that lets the sender wait.
pub struct Inbox<T> {
    channel: Channel<T>,
    call_back: Box<dyn Fn(T) + Send + Sync>,
}

impl<T: Clone + Send + 'static> Inbox<T> {
    /// And what puts into it, on zenoh's threads.
    pub fn new(
        reliability: Reliability,
        depth: usize,
        call_back: impl Fn(T) + Send + Sync + 'static,
    ) -> (Self, Callback<T>) {
        let (put, channel) = match reliability {
            Reliability::BestEffort => {
                let (put, ring) = RingChannel::new(depth).into_handler();
                (put, Channel::Ring(ring))
            }
            Reliability::Reliable => {
                let (put, queue) = FifoChannel::new(depth).into_handler();
                (put, Channel::Fifo(queue))
            }
        };
        (Self { channel, call_back: Box::new(call_back) }, put)
    }

    pub fn queue(&self) -> Option<FifoChannelHandler<T>> {
        match &self.channel {
            Channel::Ring(_) => None,
            Channel::Fifo(queue) => Some(queue.clone()),
        }
    }
}

impl<T: Send + 'static> Received for Inbox<T> {
    fn take_all(&self) -> Result<usize, Refused> {
        const BURST: usize = 1024; // of those that come meanwhile
        for taken in 0..BURST {
            let one = match &self.channel {
                Channel::Ring(ring) => ring.try_recv(),
                Channel::Fifo(queue) => queue.try_recv(),
            };
            match one.map_err(|_| Refused::Call)? {
                Some(one) => (self.call_back)(one),
                None => return Ok(taken),
            }
        }
        Ok(BURST)
    }
}

/// A message as it is sent: the sequence number stands before the payload. Measured path.
pub fn framed(message: &Message) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(size_of::<u64>() + message.data.len());
    bytes.extend_from_slice(&message.sequence.to_le_bytes());
    bytes.extend_from_slice(message.data);
    bytes
}

/// The same as it was received: as it came, unless that was in parts. Measured path.
pub fn unframed(sent: &ZBytes, call_back: impl FnOnce(u64, &[u8])) {
    let bytes = sent.to_bytes();
    if let Some((sequence, payload)) = bytes.split_first_chunk() {
        call_back(u64::from_le_bytes(*sequence), payload);
    }
}

/// The queue of the session's own subscriber, where one is: who publishes into it while it is full, on the
/// thread that empties it, waits for ever.
#[derive(Clone, Default)]
pub struct OwnQueue(Arc<OnceLock<FifoChannelHandler<Sample>>>);

impl OwnQueue {
    pub fn set(&self, queue: FifoChannelHandler<Sample>) {
        let _ = self.0.set(queue);
    }
    pub fn is_full(&self) -> bool {
        self.0.get().is_some_and(FifoChannelHandler::is_full)
    }
}
