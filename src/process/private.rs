//! Keeps what this process knows from the programs it starts: they run as the same user, who may otherwise read its environment
//! and its memory, keys included, under `/proc`.

/// From here on nobody but a privileged user may look into this process, and it leaves no core file (prctl(2),
/// `PR_SET_DUMPABLE`). Programs that it starts are as open as ever. Only Linux knows this; elsewhere nothing happens.
pub fn keep_private() {
    #[cfg(target_os = "linux")]
    if let Err(error) = rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable) {
        tracing::debug!(%error, "programs that are started could read this process's environment");
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use rustix::process::{DumpableBehavior, dumpable_behavior};

    #[test]
    fn a_private_process_cannot_be_looked_into() {
        keep_private();
        assert_eq!(dumpable_behavior().unwrap(), DumpableBehavior::NotDumpable);
    }
}
