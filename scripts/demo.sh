#!/usr/bin/env bash
# Installs what is missing, builds the command (build/bin/tilewright) and shows what it does.
set -u
source "$(dirname "${BASH_SOURCE[0]}")/phases.sh"

phase "setup" scripts/setup.sh
phase "configure" cmake --preset release
phase "build" cmake --build build -j "$jobs" --target demo
exec scripts/demo_body.sh
