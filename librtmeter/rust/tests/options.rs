//! What the library would take for what was not given.

use rtmeter_loop::{Loop, Options};
use std::path::Path;
use std::time::Duration;

#[test]
fn zero_is_no_duration() {
    let zero = Some(Duration::ZERO);
    for (field, options) in [
        ("deadline", Options { deadline: zero, ..Default::default() }),
        ("warm_up", Options { warm_up: zero, ..Default::default() }),
        ("whole", Options { whole: zero, ..Default::default() }),
    ] {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(field);
        let options = Options { folder: folder.to_str().map(str::to_owned), ..options };
        let refused = Loop::open("arm", Duration::from_millis(1), options).err().map(|e| e.to_string());
        let recorded = std::fs::remove_dir_all(&folder).is_ok();
        let expected = format!("{field} 0ns: must be longer than zero; leave it out for the default");
        assert_eq!((refused, recorded), (Some(expected), false));
    }
}
