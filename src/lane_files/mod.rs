//! The files that define the lanes of a project: finding, reading, checking and writing them.
//!
//! Where a project defines no lanes, a lane is detected from its other files. No step runs here.

mod check;
mod detection;
mod error;
mod load;
mod read;
mod runnable;

pub use check::{CheckedLanes, check, check_file};
pub use detection::{WriteLaneError, detect_if_no_lanes, detect_lane, file_to_write, write_detected};
pub use error::LaneFilesError;
pub use load::{ListedLanes, LoadedLane, list, load, require_lanes};
pub use read::{CONFIGURATION, CONFIGURATION_FOLDERS, LANES, has_configuration};
pub use runnable::can_run;

#[cfg(test)]
mod tests;
