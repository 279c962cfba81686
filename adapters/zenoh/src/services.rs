//! Requests: a querier asks, a queryable answers.

use std::sync::{Arc, Mutex};

use rtmeter_adapter::{Client, Message, OnMessage, OnReply, Refused, Reply as What, Server};
use zenoh::Wait;
use zenoh::handlers::Callback;
use zenoh::query::{Querier, Query, Reply};

use crate::inbox::{framed, unframed};

pub struct Caller {
    pub querier: Arc<Querier<'static>>,
    /// Of every query: what its replies are told to.
    pub heard: Callback<Reply>,
}

impl Client for Caller {
    fn call(&self, request: &Message) -> Result<(), Refused> {
        let query = self.querier.get().payload(framed(request)).with(self.heard.clone());
        query.wait().map_err(|_| Refused::Call)
    }
}

/// A reply that is none (the query came to its end unanswered) is told to nobody. Measured path.
pub fn hear(on_reply: &OnReply, reply: &Reply) {
    if let Ok(sample) = reply.result() {
        unframed(sample.payload(), |sequence, payload| on_reply.call(What::Result, sequence, payload));
    }
}

/// The query that is being answered, from within the callback that it came by.
#[derive(Clone, Default)]
pub struct Answers(Arc<Mutex<Option<Query>>>);

impl Answers {
    fn put(&self, query: Option<Query>) -> Option<Query> {
        std::mem::replace(&mut *self.0.lock().expect("nothing panics while it holds the lock"), query)
    }

    /// Measured path.
    pub fn ask(&self, on_request: &OnMessage, query: Query) {
        let Some(asked) = query.payload().cloned() else { return };
        self.put(Some(query));
        unframed(&asked, |sequence, payload| on_request.call(sequence, payload));
        self.put(None); // one without an answer ends here
    }
}

impl Server for Answers {
    fn reply(&self, _what: What, message: &Message) -> Result<(), Refused> {
        let query = self.put(None).ok_or(Refused::Call)?;
        query.reply(query.key_expr(), framed(message)).wait().map_err(|_| Refused::Call)
    }
}
