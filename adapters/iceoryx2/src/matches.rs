//! Discovery: how many ends a topic has, its service's dynamic configuration says. That there are more or fewer, the
//! event tells: whoever waits at it is told of notifiers that come and go, and each end has one.

use std::sync::Mutex;

use iceoryx2::prelude::{EventId, PortFactory};
use iceoryx2::service::builder::event::Builder;
use rtmeter_adapter::{End, OnMatch};

use crate::{Topic, Variant};

/// The event of all participants, which tells of its notifiers.
pub fn telling(event: Builder<Variant>) -> Builder<Variant> {
    let changed = EventId::new(0);
    event.notifier_created_event(changed).notifier_dropped_event(changed).notifier_dead_event(changed)
}

/// Who is told, and what was said last: by end, with how many ends of others it is matched.
pub struct Watch {
    pub on_match: OnMatch,
    pub told: Mutex<[usize; 2]>,
}

impl Watch {
    /// Tells what has changed; whether anything has. A participant has one end of either kind.
    pub fn look(&self, topic: &Topic) -> bool {
        let now = topic.dynamic_config();
        let mut told = self.told.lock().expect("nothing panics while it holds the lock");
        let mut changed = false;
        for (end, ends) in
            [(End::Publisher, now.number_of_subscribers()), (End::Subscriber, now.number_of_publishers())]
        {
            let others = ends.saturating_sub(1);
            if std::mem::replace(&mut told[end as usize], others) != others {
                self.on_match.call(end, others);
                changed = true;
            }
        }
        changed
    }
}
