#!/bin/sh
# Runs suites of controller-runtime, whose tests come with its Go module, on the programs of a
# folder: those of `vmhost envtest`, or a real etcd and kube-apiserver to compare.
#
#   tests/envtest.sh ASSETS [PACKAGE...]
#
#   tests/envtest.sh "$(vmhost envtest)"
#   tests/envtest.sh "$(vmhost envtest)" client cache
#
# Without packages: envtest, which starts and stops control planes. VERSION is another version of
# controller-runtime. Exit code 3: Go is not installed.
set -eu
export KUBEBUILDER_ASSETS=$1
shift
[ $# -gt 0 ] || set -- envtest
version=${VERSION:-v0.25.2}
command -v go >/dev/null || exit 3

module=$(go mod download -json "sigs.k8s.io/controller-runtime@$version" |
  sed -n 's/^	"Dir": "\(.*\)",$/\1/p')
copy=$(mktemp -d)
trap 'chmod -R u+w -- "$copy"; rm -rf -- "$copy"' EXIT
cp -R "$module/." "$copy"
chmod -R u+w "$copy"
cd "$copy"
for package in "$@"; do
  # One package at a time: each starts a control plane of its own.
  go test -count=1 "./pkg/$package"
done
