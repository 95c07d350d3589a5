//! MCP servers: working, misbehaving and third-party ones.

/// Ends a test if there is no Python for its server.
macro_rules! needs_python {
    () => {
        let python = crate::mcp::scene::PYTHON;
        if !std::path::Path::new(python).exists() {
            return crate::support::Need::Python.lacks(&format!("no {python}"));
        }
    };
}

mod behaving;
mod misbehaving;
mod real;
mod runs;
mod scene;
