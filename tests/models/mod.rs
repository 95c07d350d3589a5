//! Models over their wire formats: requests, answers, keys, proxies and recordings.

mod configured;
mod endpoints;
mod recording;
mod tls;
mod wire_formats;
