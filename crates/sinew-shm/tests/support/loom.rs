//! What the models of the local queue and of the link between domains share.
#![allow(dead_code)]

use std::sync::OnceLock;

use loom::sync::Mutex;
use sinew_shm::Lock;

/// Loom's mutex, made at its first use, since it cannot be made in a constant.
pub struct LoomLock(OnceLock<Mutex<()>>);

// SAFETY: a mutex excludes the others and orders its holders.
unsafe impl Lock for LoomLock {
    const NEW: Self = LoomLock(OnceLock::new());

    fn with<R>(&self, f: impl FnOnce() -> R) -> R {
        let _held = self.0.get_or_init(|| Mutex::new(())).lock().unwrap();
        f()
    }
}

/// Explores every interleaving with up to `preemptions` forced switches.
pub fn explore(preemptions: usize, model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    // The steps of one interleaving; opening an end alone takes some hundred.
    builder.max_branches = 20_000;
    builder.check(model);
}

/// Whether this program's tests, chosen by `arguments`, pass with a synchronisation point weakened.
pub fn passes_without(point: &str, arguments: &[&str]) -> bool {
    let program = std::env::current_exe().unwrap();
    let mut run = std::process::Command::new(program);
    run.args(arguments).env("SINEW_MUTANT", point);
    run.output().unwrap().status.success()
}
