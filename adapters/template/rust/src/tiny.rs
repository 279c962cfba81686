//! The middleware that the template measures, so that the template runs: topics of one process, dispatched
//! by whoever spins, with a mutex and a condition variable. Yours takes its place.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

type Callback = Arc<dyn Fn(u64, &[u8]) + Send + Sync>;

struct Message {
    topic: String,
    sequence: u64,
    data: Vec<u8>,
}

#[derive(Default)]
struct State {
    subscribers: HashMap<String, Callback>,
    messages: VecDeque<Message>, // not delivered yet
    interrupted: bool,
}

pub struct Context {
    depth: usize,
    state: Mutex<State>,
    changed: Condvar,
}

impl Context {
    /// Each topic keeps its last `depth` messages.
    pub fn new(depth: usize) -> Self {
        Self { depth, state: Mutex::default(), changed: Condvar::new() }
    }

    pub fn subscribe(&self, topic: &str, callback: impl Fn(u64, &[u8]) + Send + Sync + 'static) {
        self.state.lock().unwrap().subscribers.insert(topic.into(), Arc::new(callback));
    }

    pub fn publish(&self, topic: &str, sequence: u64, data: &[u8]) {
        let mut state = self.state.lock().unwrap();
        let kept = state.messages.iter().filter(|message| message.topic == topic).count();
        if kept == self.depth {
            let oldest = state.messages.iter().position(|message| message.topic == topic);
            oldest.and_then(|oldest| state.messages.remove(oldest));
        }
        state.messages.push_back(Message { topic: topic.into(), sequence, data: data.into() });
        self.changed.notify_all();
    }

    pub fn interrupt(&self) {
        self.state.lock().unwrap().interrupted = true;
        self.changed.notify_all();
    }

    /// Runs the callback that is ready next, waiting for one no longer than the timeout. False if there was
    /// none, or after interrupt().
    pub fn spin_once(&self, timeout: Duration) -> bool {
        let until = Instant::now() + timeout;
        let mut state = self.state.lock().unwrap();
        loop {
            if std::mem::take(&mut state.interrupted) {
                return false;
            }
            if let Some(message) = state.messages.pop_front() {
                let callback = state.subscribers.get(&message.topic).cloned();
                drop(state);
                if let Some(callback) = callback {
                    callback(message.sequence, &message.data);
                }
                return true;
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            state = self.changed.wait_timeout(state, left).unwrap().0;
        }
    }
}
