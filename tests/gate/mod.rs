//! The gate of a run: the files that it freezes and restores, and its verdict.

mod base;
mod canaries;
mod configuration;
mod dependencies;
mod fix;
mod flags;
mod git_inside;
mod held_back;
mod hidden;
mod imports;
mod install;
mod judging;
mod locks;
mod named;
mod reported;
mod room_git;
mod rooms;
mod unfetched;
mod vendored;
