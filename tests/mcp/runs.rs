//! Whole runs with a server.
