//! Limits on what programs in a sandbox use.

use crate::process::{ProcessBounds, census};
use serde::{Deserialize, Serialize};
use std::sync::LazyLock;

/// Limits on what programs in a sandbox use. `None` means that fledge sets no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SandboxLimits {
    /// Processes and threads, all together.
    pub processes: Option<u64>,
    /// Bytes of memory, all together.
    pub memory: Option<u64>,
    /// Bytes of one file.
    pub file_size: Option<u64>,
}

impl Default for SandboxLimits {
    fn default() -> Self {
        Self { processes: Some(4096), memory: machine_memory().map(|all| all / 4 * 3), file_size: Some(16 << 30) }
    }
}

impl SandboxLimits {
    /// Returns the lower one of each pair of limits.
    #[must_use]
    pub fn within(self, other: Self) -> Self {
        let lower = |one: Option<u64>, other: Option<u64>| one.into_iter().chain(other).min();
        Self {
            processes: lower(self.processes, other.processes),
            memory: lower(self.memory, other.memory),
            file_size: lower(self.file_size, other.file_size),
        }
    }

    /// Returns the limits that fledge itself watches while a program runs. The kernel does not
    /// limit the processes of root, and limits memory only for each process.
    pub fn bounds(self) -> ProcessBounds {
        ProcessBounds { processes: self.processes, memory: self.memory }
    }
}

/// Returns the memory of this machine, or of the container that this process is in, in bytes.
fn machine_memory() -> Option<u64> {
    static ALL: LazyLock<Option<u64>> = LazyLock::new(|| {
        let text = census::read("/proc/meminfo")?;
        let kilobytes = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?.trim().strip_suffix("kB")?;
        let machine = kilobytes.trim().parse::<u64>().ok()?.saturating_mul(1024);
        let of_group = |path| census::read(path)?.trim().parse::<u64>().ok();
        let group = ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"];
        group.into_iter().filter_map(of_group).chain([machine]).min()
    });
    *ALL
}
