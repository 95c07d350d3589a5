//! The runner that stays: an HTTP API and a page over the runs, jobs and monitors of one workspace.
