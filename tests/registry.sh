#!/bin/sh
# Prints the path of `registry`, the OCI registry of github.com/distribution, in a cache folder.
# Builds it from its Go module if it is not there, once for each machine and version: a minute or
# two on two cores.
#
#   tests/registry.sh
#
# Exit code 3: Go is not installed.
set -eu
version=v3.1.2
folder="${XDG_CACHE_HOME:-$HOME/.cache}/vmhost/registry/$version"
file="$folder/registry"

if [ ! -x "$file" ]; then
  command -v go >/dev/null || exit 3
  mkdir -p "$folder"
  # One process builds; the others wait and then find the program.
  exec 9>"$folder/.lock"
  flock 9
fi
if [ ! -x "$file" ]; then
  echo "building registry ($version) into $folder: minutes, once" >&2
  # Only a complete program gets the name that other processes look for.
  GOBIN="$folder/unfinished" go install -trimpath -ldflags "-s -w" \
    "github.com/distribution/distribution/v3/cmd/registry@$version" >&2
  mv "$folder/unfinished/registry" "$file"
fi
echo "$file"
