//! Verified work on its way to the user: commits, patches, branches, worktrees, reports for CI.

mod apply;
mod attest;
mod ci_results;
mod commits;
mod diff_undo;
mod outside;
mod ways;
mod worktrees;
mod worktrees_beside;
mod worktrees_left;
