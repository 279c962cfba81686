//! The smallest round trip over iceoryx2: publishers and subscribers that overwrite their oldest, an event beside
//! each. `PROGRAM pong`, or `PROGRAM ping PERIOD_NS PINGS`.
// SPDX-License-Identifier: Apache-2.0

mod pacing;

use iceoryx2::port::listener::Listener;
use iceoryx2::port::notifier::Notifier;
use iceoryx2::port::publisher::Publisher;
use iceoryx2::port::subscriber::Subscriber;
use iceoryx2::prelude::*;
use iceoryx2::service::port_factory::{event, publish_subscribe};
use pacing::{PAYLOAD, Plan, Trips};

type Ipc = ipc::Service;

fn node() -> Node<Ipc> {
    NodeBuilder::new().create().expect("a node")
}

fn name(what: &str) -> ServiceName {
    ServiceName::new(&format!("rtmeter-direct/{what}")).expect("a name")
}

type Topic = publish_subscribe::PortFactory<Ipc, [u8], u64>;

/// The topic's messages, and the event that tells of them.
fn services(node: &Node<Ipc>, topic: &str) -> (Topic, event::PortFactory<Ipc>) {
    let messages = node
        .service_builder(&name(topic))
        .publish_subscribe::<[u8]>()
        .user_header::<u64>()
        .subscriber_max_buffer_size(1)
        .history_size(0);
    let event = node.service_builder(&name(topic)).event();
    (
        messages.open_or_create().expect("a service"),
        event.open_or_create().expect("an event"),
    )
}

fn sender(node: &Node<Ipc>, topic: &str) -> (Publisher<Ipc, [u8], u64>, Notifier<Ipc>) {
    let (messages, event) = services(node, topic);
    let publisher = messages.publisher_builder().initial_max_slice_len(PAYLOAD);
    (
        publisher.create().expect("a publisher"),
        event.notifier_builder().create().expect("a notifier"),
    )
}

fn receiver(node: &Node<Ipc>, topic: &str) -> (Subscriber<Ipc, [u8], u64>, Listener<Ipc>) {
    let (messages, event) = services(node, topic);
    (
        messages
            .subscriber_builder()
            .create()
            .expect("a subscriber"),
        event.listener_builder().create().expect("a listener"),
    )
}

fn send(to: &(Publisher<Ipc, [u8], u64>, Notifier<Ipc>), number: u64, payload: &[u8]) {
    let mut sample = to.0.loan_slice_uninit(payload.len()).expect("memory");
    *sample.user_header_mut() = number;
    sample.write_from_slice(payload).send().expect("sent");
    to.1.notify().expect("notified");
}

/// Calls back for what comes, without end.
fn receive(
    from: &(Subscriber<Ipc, [u8], u64>, Listener<Ipc>),
    mut came: impl FnMut(u64, &[u8]),
) -> ! {
    loop {
        from.1.blocking_wait(|_| {}).expect("an event");
        while let Some(sample) = from.0.receive().expect("a sample") {
            came(*sample.user_header(), sample.payload());
        }
    }
}

fn main() {
    let plan = Plan::of_arguments();
    if !plan.is_ping() {
        let node = node();
        let back = sender(&node, "pong");
        receive(&receiver(&node, "ping"), |number, payload| {
            send(&back, number, payload)
        });
    }
    let trips = Trips::new(plan);
    let received = trips.clone();
    // Its ports are of one thread each.
    std::thread::spawn(move || {
        receive(&receiver(&node(), "pong"), |number, _| {
            received.came(number)
        })
    });
    let node = node();
    let there = sender(&node, "ping");
    pacing::sleep_ms(1500); // until the other side is there
    trips.ping(|number| send(&there, number, &[0; PAYLOAD]));
}
