//! A loop of 1 kHz on the library's grid: rust-loop FOLDER RELEASES

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rtmeter_loop::{Loop, Options};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut words = std::env::args().skip(1);
    let (Some(folder), Some(releases)) = (words.next(), words.next()) else {
        return Err("usage: rust-loop FOLDER RELEASES".into());
    };
    let late = Arc::new(AtomicU64::new(0));
    let counted = late.clone();
    let options = Options {
        folder: Some(folder),
        miss_ratio: 0.5, // of an example on any machine; yours is stricter
        warm_up: Some(Duration::from_millis(20)),
        on_late: Some(Box::new(move |_k, _release_ns, _stamp_ns| {
            counted.fetch_add(1, Ordering::Relaxed);
        })),
        ..Options::default()
    };
    let mut control = Loop::open("rust-control", Duration::from_millis(1), options)?;
    let (mut position, mut velocity) = (1.0_f64, 0.0_f64);
    for _ in 0..releases.parse::<u64>()? {
        control.sleep();
        velocity += (-40.0 * position - 8.0 * velocity) * 1e-3;
        position += velocity * 1e-3;
        control.done();
    }
    control.close()?;
    println!("position {position:.6}, {} late", late.load(Ordering::Relaxed));
    Ok(())
}
