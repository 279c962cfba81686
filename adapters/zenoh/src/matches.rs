//! Discovery: each end has a liveliness token, as those of ROS 2's rmw_zenoh have, and is told of the others'.
//! A publisher's own matching status says whether somebody listens, not how many.

use std::collections::HashSet;
use std::sync::Mutex;

use rtmeter_adapter::{End, OnMatch, Reliability};
use zenoh::handlers::Callback;
use zenoh::liveliness::LivelinessToken;
use zenoh::sample::{Sample, SampleKind};
use zenoh::{Session, Wait};

use crate::inbox::Inbox;

/// The key of an end's token: its topic's, what it is, and whose.
pub fn token(session: &Session, topic_key: &str, end: End) -> zenoh::Result<LivelinessToken> {
    let end = if end == End::Publisher { "publisher" } else { "subscriber" };
    session.liveliness().declare_token(format!("{topic_key}/{end}/{}", session.zid())).wait()
}

/// Who is there, by the end of ours that it is matched with.
struct Known {
    own: String,
    on_match: OnMatch,
    others: Mutex<[HashSet<String>; 2]>,
}

impl Known {
    /// A token that came or went.
    fn hear(&self, sample: &Sample) {
        let mut parts = sample.key_expr().as_str().rsplit('/');
        let (Some(id), Some(what)) = (parts.next(), parts.next()) else { return };
        if id == self.own {
            return;
        }
        let end = if what == "publisher" { End::Subscriber } else { End::Publisher };
        let mut others = self.others.lock().expect("nothing panics while it holds the lock");
        let known = &mut others[end as usize];
        match sample.kind() {
            SampleKind::Put => known.insert(id.to_string()),
            SampleKind::Delete => known.remove(id),
        };
        self.on_match.call(end, known.len());
    }
}

/// What tells of the others' tokens, and what puts into it; none of them is dropped.
pub fn inbox(session: &Session, on_match: OnMatch) -> (Inbox<Sample>, Callback<Sample>) {
    const ROOM: usize = 256; // zenoh's own
    let known = Known { own: session.zid().to_string(), on_match, others: Mutex::default() };
    Inbox::new(Reliability::Reliable, ROOM, move |sample| known.hear(&sample))
}
