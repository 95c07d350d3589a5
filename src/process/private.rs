//! Protection of this process's secrets from the programs it starts. They run as the same user, and
//! could otherwise read its environment and memory, including keys, under `/proc`.

/// Lets only privileged users look into this process from now on, and disables its core file
/// (prctl(2), `PR_SET_DUMPABLE`). Does not change the programs that it starts. Does nothing on
/// systems other than Linux.
pub fn keep_private() {
    #[cfg(target_os = "linux")]
    if let Err(error) = rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable) {
        tracing::debug!(%error, "started programs may be able to read this process's environment");
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
