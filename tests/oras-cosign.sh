#!/usr/bin/env bash
# A round trip by hand with oras and cosign, which no gate runs: what `vmhost push` and `sign` write
# is read by them, and what they write by vmhost. Builds both from their Go modules into a cache
# folder, once for each machine and version: some minutes on two cores. vmhost is the one on PATH.
#
#   tests/oras-cosign.sh COMPONENT
#
# The private key is used without a transparency log, so that nothing leaves the machine.
set -euo pipefail
# A build that fails ends the script, also within $( ).
shopt -s inherit_errexit
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
component=$(readlink --canonicalize-existing "${1:?a component}")
oras_version=v1.3.6 cosign_version=v3.1.3
port=${PORT:-5055}

. "$here/build-once.sh"

oras=$(build_once oras "$oras_version" oras \
  go_install "-s -w" "oras.land/oras/cmd/oras@$oras_version")
cosign=$(build_once cosign "$cosign_version" cosign \
  go_install "-s -w" "github.com/sigstore/cosign/v3/cmd/cosign@$cosign_version")

work=$(mktemp -d)
cd "$work"
trap 'kill "$(cat registry/pid)" 2>/dev/null; rm -rf "$work"' EXIT
"$here/walk/registry" registry "$port"
repository=127.0.0.1:$port/team/plugin
step() { printf '\n== %s\n' "$*"; }
# The digest of the first layer of a manifest.
layer() { sed 's/.*"layers":\[{[^}]*"digest":"\([^"]*\)".*/\1/' | tr -d '\n'; }

step "vmhost push: oras reads the same bytes"
vmhost push "$component" "oci://$repository:ours" --insecure
"$oras" manifest fetch --plain-http "$repository:ours" >manifest.json
"$oras" blob fetch --plain-http --output ours.wasm "$repository@$(layer <manifest.json)"
cmp "$component" ours.wasm

step "oras push: vmhost reads the same bytes"
"$oras" manifest fetch-config --plain-http "$repository:ours" >config.json
cp "$component" theirs.wasm
"$oras" push --plain-http --config config.json:application/vnd.wasm.config.v0+json \
  "$repository:theirs" theirs.wasm:application/wasm
vmhost inspect "oci://$repository:theirs" --insecure
vmhost pull "oci://$repository:theirs" --insecure --output pulled.wasm
cmp "$component" pulled.wasm

step "vmhost sign: cosign verifies"
openssl genpkey -algorithm ec -pkeyopt ec_paramgen_curve:P-256 -out my.key
openssl pkey -in my.key -pubout -out my.pub
vmhost sign "oci://$repository:ours" --key my.key --insecure
"$cosign" verify --key my.pub --insecure-ignore-tlog=true "$repository:ours"

step "cosign sign: vmhost verifies"
export COSIGN_PASSWORD=
"$cosign" import-key-pair --key my.key --output-key-prefix theirs
"$cosign" sign --yes --key theirs.key --use-signing-config=false --tlog-upload=false \
  "$repository:theirs"
vmhost verify "oci://$repository:theirs" --key my.pub --insecure

step "oras copy takes the signature along"
"$oras" copy --recursive --from-plain-http --to-plain-http \
  "$repository:ours" "$repository-copy:ours"
vmhost verify "oci://$repository-copy:ours" --key my.pub --insecure
step "all of it works"
