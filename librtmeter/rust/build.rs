//! Links librtmeter: of the folder RTMETER_LIB_DIR, or as pkg-config finds it.

use std::process::Command;

fn main() {
    println!("cargo:rerun-if-env-changed=RTMETER_LIB_DIR");
    let folder = std::env::var("RTMETER_LIB_DIR").ok().or_else(|| {
        let found = Command::new("pkg-config").args(["--variable=libdir", "rtmeter"]).output().ok()?;
        let folder = String::from_utf8(found.stdout).ok()?.trim().to_owned();
        (!folder.is_empty()).then_some(folder)
    });
    if let Some(folder) = folder {
        println!("cargo:rustc-link-search=native={folder}");
    }
    println!("cargo:rustc-link-lib=dylib=rtmeter");
}
