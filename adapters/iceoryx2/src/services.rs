//! Requests: iceoryx2's request–response, over shared memory as publish–subscribe is.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Arc, Mutex};

use iceoryx2::active_request::ActiveRequest;
use iceoryx2::pending_response::PendingResponse;
use iceoryx2::port::client::Client as Port;
use iceoryx2::port::notifier::Notifier;
use iceoryx2::port::server::Server as ServerPort;
use iceoryx2::response::Response;
use rtmeter_adapter::{Client, Message, OnMessage, OnReply, Refused, Reply, Server};

use crate::{BURST, Received, Variant, notify};

/// How many requests of a client may be under way; the oldest is given up for one more.
pub const MOST: usize = 8;

type Pending = PendingResponse<Variant, [u8], u64, [u8], u64>;
type Answer = Response<Variant, [u8], u64>;
type Active = ActiveRequest<Variant, [u8], u64, [u8], u64>;

/// Of one client: what was asked and not yet answered, the oldest first.
type Asked = Arc<Mutex<VecDeque<Pending>>>;

/// The user header is the sequence number, of request and response.
pub struct Caller {
    port: Port<Variant, [u8], u64, [u8], u64>,
    asked: Asked,
    wakes: Option<Notifier<Variant>>,
}

impl Client for Caller {
    /// The payload is written where the server reads it.
    fn call(&self, request: &Message) -> Result<(), Refused> {
        {
            // Until it stands there: its response may come before.
            let mut asked = self.asked.lock().expect("nothing panics while it holds the lock");
            if asked.len() == MOST {
                asked.pop_front();
            }
            let mut loaned = self.port.loan_slice_uninit(request.data.len()).map_err(|_| Refused::Call)?;
            *loaned.user_header_mut() = request.sequence;
            asked.push_back(loaned.write_from_slice(request.data).send().map_err(|_| Refused::Call)?);
        }
        notify(self.wakes.as_ref())
    }
}

/// Where a client's responses come.
pub struct Responses {
    asked: Asked,
    on_reply: OnReply,
}

/// A client, and where its responses come.
pub fn client(
    port: Port<Variant, [u8], u64, [u8], u64>,
    wakes: Option<Notifier<Variant>>,
    on_reply: OnReply,
) -> (Caller, Responses) {
    let asked = Asked::new(Mutex::new(VecDeque::with_capacity(MOST)));
    (Caller { port, asked: asked.clone(), wakes }, Responses { asked, on_reply })
}

impl Responses {
    /// The oldest request that is answered, with its response.
    fn next(&self, failed: &mut bool) -> Option<(Pending, Answer)> {
        let mut asked = self.asked.lock().expect("nothing panics while it holds the lock");
        for at in 0..asked.len() {
            match asked[at].receive() {
                Ok(Some(response)) => return Some((asked.remove(at)?, response)),
                Ok(None) => {}
                Err(_) => *failed = true,
            }
        }
        None
    }
}

impl Received for Responses {
    /// The core is told without the lock, for which its sender may wait.
    fn take_all(&self) -> Result<usize, Refused> {
        let (mut taken, mut failed) = (0, false);
        for _ in 0..MOST {
            let Some((_request, response)) = self.next(&mut failed) else { break };
            self.on_reply.call(Reply::Result, *response.user_header(), response.payload());
            taken += 1;
        }
        if failed { Err(Refused::Call) } else { Ok(taken) }
    }
}

/// The request that is being answered, from within the callback that it came by; null otherwise.
type Answered = Arc<AtomicPtr<Active>>;

pub struct Answers {
    answered: Answered,
    wakes: Option<Notifier<Variant>>,
}

impl Server for Answers {
    fn reply(&self, _what: Reply, message: &Message) -> Result<(), Refused> {
        // The core replies from within the callback, for which Requests keeps the request where it is.
        let request = unsafe { self.answered.load(Ordering::Acquire).as_ref() }.ok_or(Refused::Call)?;
        let mut loaned = request.loan_slice_uninit(message.data.len()).map_err(|_| Refused::Call)?;
        *loaned.user_header_mut() = message.sequence;
        loaned.write_from_slice(message.data).send().map_err(|_| Refused::Call)?;
        notify(self.wakes.as_ref())
    }
}

/// Where a server's requests come.
pub struct Requests {
    port: ServerPort<Variant, [u8], u64, [u8], u64>,
    answered: Answered,
    on_request: OnMessage,
}

/// A server, and where its requests come.
pub fn server(
    port: ServerPort<Variant, [u8], u64, [u8], u64>,
    wakes: Option<Notifier<Variant>>,
    on_request: OnMessage,
) -> (Answers, Requests) {
    let answered = Answered::default();
    (Answers { answered: answered.clone(), wakes }, Requests { port, answered, on_request })
}

impl Received for Requests {
    fn take_all(&self) -> Result<usize, Refused> {
        for taken in 0..BURST {
            let Some(mut request) = self.port.receive().map_err(|_| Refused::Call)? else { return Ok(taken) };
            self.answered.store(&raw mut request, Ordering::Release);
            self.on_request.call(*request.user_header(), request.payload());
            self.answered.store(std::ptr::null_mut(), Ordering::Release);
        } // the request ends: its client is told that no more will come
        Ok(BURST)
    }
}
