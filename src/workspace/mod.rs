//! The directory that the agent may change: files by way of [`jail`].

pub mod jail;
