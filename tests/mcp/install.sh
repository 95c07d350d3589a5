#!/bin/sh
# Installs the servers of the tests in real.rs into the given folder, unless they are there already.
set -eu
mkdir -p "$1"
cd "$1"
[ -d node_modules/@modelcontextprotocol/server-filesystem ] || npm install --silent --no-audit --no-fund --prefix . \
    @modelcontextprotocol/server-everything@2026.8.31 @modelcontextprotocol/server-filesystem@2026.8.31
if [ ! -x venv/bin/mcp-server-time ]; then
    /usr/bin/python3 -m venv venv
    venv/bin/pip install --quiet --disable-pip-version-check mcp-server-time==2026.10.19
fi
