//! The smallest round trip over zenoh: two peers by TCP, express, a ring of one; z_ping and z_pong with a number
//! in each message. `PROGRAM pong`, or `PROGRAM ping PERIOD_NS PINGS`.
// SPDX-License-Identifier: Apache-2.0

mod pacing;

use pacing::{PAYLOAD, Plan, Trips};
use zenoh::handlers::RingChannel;
use zenoh::qos::CongestionControl;
use zenoh::{Config, Wait};

const PLACE: &str = "[\"tcp/127.0.0.1:17447\"]";

fn main() {
    let plan = Plan::of_arguments();
    let (listen, connect) = if plan.is_ping() {
        ("[]", PLACE)
    } else {
        (PLACE, "[]")
    };
    let (there, back) = if plan.is_ping() {
        ("ping", "pong")
    } else {
        ("pong", "ping")
    };
    let mut config = Config::default();
    for (key, value) in [
        ("listen/endpoints", listen),
        ("connect/endpoints", connect),
        ("scouting/multicast/enabled", "false"),
        ("scouting/gossip/enabled", "false"),
    ] {
        config.insert_json5(key, value).expect("a key of zenoh's");
    }
    let session = zenoh::open(config).wait().expect("a session");
    let publisher = session
        .declare_publisher(there)
        .congestion_control(CongestionControl::Drop);
    let publisher = publisher.express(true).wait().expect("a publisher");
    let subscriber = session
        .declare_subscriber(back)
        .with(RingChannel::new(1))
        .wait()
        .expect("a subscriber");

    if !plan.is_ping() {
        loop {
            let sample = subscriber.recv().expect("a sample");
            publisher
                .put(sample.payload().to_bytes().to_vec())
                .wait()
                .expect("sent");
        }
    }
    while !publisher
        .matching_status()
        .wait()
        .expect("a status")
        .matching()
    {
        pacing::sleep_ms(1);
    }
    pacing::sleep_ms(500); // the other side may be a little later
    let trips = Trips::new(plan);
    let received = trips.clone();
    std::thread::spawn(move || {
        while let Ok(sample) = subscriber.recv() {
            let bytes = sample.payload().to_bytes();
            received.came(u64::from_le_bytes(*bytes.first_chunk().expect("a number")));
        }
    });
    trips.ping(|number| {
        let mut bytes = Vec::with_capacity(size_of::<u64>() + PAYLOAD);
        bytes.extend_from_slice(&number.to_le_bytes());
        bytes.resize(size_of::<u64>() + PAYLOAD, 0);
        publisher.put(bytes).wait().expect("sent");
    });
}
