//! What the smallest direct programs in Rust share, as ping_pong.hpp has it for those in C++: pacing, counting,
//! printing. No real-time settings: chrt, taskset.
// SPDX-License-Identifier: Apache-2.0

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::thread::sleep;
use std::time::Duration;

pub const PAYLOAD: usize = 500; // bytes
const LOST_NS: i64 = 500_000_000;

pub fn sleep_ms(ms: u64) {
    sleep(Duration::from_millis(ms));
}

/// `PROGRAM pong`, or `PROGRAM ping PERIOD_NS PINGS`.
#[derive(Clone, Copy)]
pub struct Plan {
    period_ns: i64,
    pings: usize,
}

impl Plan {
    /// Locks the memory, too.
    pub fn of_arguments() -> Self {
        let words: Vec<String> = std::env::args().skip(1).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let plan = match words[..] {
            ["pong"] => Some(Self {
                period_ns: 0,
                pings: 0,
            }),
            ["ping", period, pings] => period
                .parse()
                .ok()
                .zip(pings.parse().ok())
                .map(|(period_ns, pings)| Self { period_ns, pings }),
            _ => None,
        };
        let Some(plan) = plan else {
            eprintln!("usage: pong | ping PERIOD_NS PINGS");
            std::process::exit(1);
        };
        unsafe { libc::mlockall(libc::MCL_CURRENT | libc::MCL_FUTURE) };
        plan
    }
    pub fn is_ping(&self) -> bool {
        self.pings > 0
    }
}

fn now_ns() -> i64 {
    let mut t = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut t) };
    t.tv_sec * 1_000_000_000 + t.tv_nsec
}

fn sleep_until(ns: i64) {
    let t = libc::timespec {
        tv_sec: ns / 1_000_000_000,
        tv_nsec: ns % 1_000_000_000,
    };
    unsafe {
        libc::clock_nanosleep(
            libc::CLOCK_MONOTONIC,
            libc::TIMER_ABSTIME,
            &t,
            std::ptr::null_mut(),
        )
    };
}

/// Round trips of a thread that sends while another one receives, as rtmeter's receive=spin has it.
#[derive(Clone)]
pub struct Trips {
    plan: Plan,
    sent: Arc<Vec<AtomicI64>>,
    trips: Arc<Vec<AtomicI64>>,
}

impl Trips {
    pub fn new(plan: Plan) -> Self {
        let numbers = || Arc::new((0..plan.pings).map(|_| AtomicI64::new(-1)).collect());
        Self {
            plan,
            sent: numbers(),
            trips: numbers(),
        }
    }

    /// First thing after taking: number n came back.
    pub fn came(&self, n: u64) {
        let now = now_ns();
        if let Some(trip) = self.trips.get(n as usize) {
            trip.store(
                now - self.sent[n as usize].load(Ordering::Relaxed),
                Ordering::Release,
            );
        }
    }

    /// Sends number n by send(n), a period apart; while one is under way, and not lost, passes releases over.
    /// Prints, when all is done, a line for each that came: its number and its round trip in nanoseconds.
    /// Ends the process: the other thread waits on.
    pub fn ping(&self, send: impl Fn(u64)) -> ! {
        let start = now_ns();
        let mut under_way = None;
        for n in 0..self.plan.pings {
            sleep_until(start + (n as i64 + 1) * self.plan.period_ns);
            let now = now_ns();
            let waits = |n: usize| {
                self.trips[n].load(Ordering::Acquire) < 0
                    && now - self.sent[n].load(Ordering::Relaxed) < LOST_NS
            };
            if under_way.is_some_and(waits) {
                continue;
            }
            self.sent[n].store(now, Ordering::Relaxed);
            send(n as u64);
            under_way = Some(n);
        }
        sleep(Duration::from_nanos(LOST_NS as u64));
        for (n, trip) in self
            .trips
            .iter()
            .map(|trip| trip.load(Ordering::Acquire))
            .enumerate()
        {
            if trip >= 0 {
                println!("{n} {trip}");
            }
        }
        std::process::exit(0);
    }
}
