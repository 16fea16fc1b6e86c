#!/bin/sh
# Makes the tables of built-in kinds anew, from the kube-apiserver of the version in
# kube-apiserver/go.mod, and prints what has changed: the whole of a change to a new version of
# Kubernetes, but for the behaviour that no document of a server tells
# (host/apiserver/src/builtin/behaviour.json, host/apiserver/schema/src/builtin/defaults.json).
#
#   tests/tables.sh
set -eu
cd "$(dirname "$0")/.."
export VMHOST_WRITE_TABLES=1 VMHOST_REQUIRE_KUBE_APISERVER=1
cargo test -p vmhost-tests --test suite tables::the_tables -- --nocapture
empty=$(cd tests/kube-apiserver && go run ./cmd/empty)
printf '%s\n' "$empty" >host/apiserver/src/builtin/empty.json
exec python3 tests/protobuf.py
