//! Servers that others have written, from package registries. `FLEDGE_MCP` names the folder into which they were installed.
