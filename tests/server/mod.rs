//! Tests of `fledge serve`: the HTTP interface, the engine behind it and the page in a browser.

mod engine;
mod http;
mod page;
mod serving;
