//! What the tests of the drivers share: the demo services at an endpoint.
#![allow(dead_code)]

use std::path::PathBuf;
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};

use sinew_demo::{CacheService, KindsService, cache, kinds};
use sinew_io::serve::Listening;
use sinew_io::{Endpoint, Server};

/// The demo services, as `sinew serve` has them.
pub type Demo = (cache::Serve<CacheService>, kinds::Serve<KindsService<64>>);

/// A server of the demo services.
pub fn server() -> Server<Demo> {
    Server::new(services())
}

/// The demo services.
pub fn services() -> Demo {
    (
        cache::Serve(CacheService::new()),
        kinds::Serve(KindsService::new()),
    )
}

/// A path that no other test uses.
pub fn fresh_path(name: &str) -> PathBuf {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let path = std::env::temp_dir().join(format!("sinew-{}-{count}-{name}", std::process::id()));
    // An earlier process with this number may have left one behind.
    let _ = std::fs::remove_file(&path);
    path
}

/// This machine by a name that nobody else has: every port of it is free, and stays so.
pub fn fresh_host() -> String {
    static COUNT: AtomicU8 = AtomicU8::new(1);
    let [.., high, low] = std::process::id().to_be_bytes();
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    format!("127.{count}.{high}.{low}")
}

/// An endpoint of this kind that nobody uses.
pub fn fresh_endpoint(kind: &str) -> Endpoint {
    match kind {
        "tcp" => "tcp:127.0.0.1:0".parse().unwrap(),
        "udp" => "udp:127.0.0.1:0".parse().unwrap(),
        _ => format!("{kind}:{}", fresh_path("sock").display())
            .parse()
            .unwrap(),
    }
}

/// A server of the demo services at a fresh endpoint.
pub fn listen(kind: &str) -> (Server<Demo>, Listening) {
    let server = server();
    let listening = server.listen(&fresh_endpoint(kind)).unwrap();
    (server, listening)
}

/// A pseudo-terminal: its controlling side, and the path of the other one.
pub fn pty() -> (std::os::fd::OwnedFd, PathBuf) {
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let name = ptsname(&master, Vec::new()).unwrap();
    (master, PathBuf::from(name.into_string().unwrap()))
}
