#!/bin/sh
# Runs Kubernetes' own conformance cases of sig-api-machinery that need no nodes and no controllers
# on the server of $KUBECONFIG. On kube-apiserver alone, all 42 pass in four minutes.
#
#   vmhost apiserver --for-command -- tests/conformance.sh
#   KUBECONFIG=FILE tests/conformance.sh [GINKGO-FLAG...]
#
# Builds e2e.test of the version in kube-apiserver/go.mod from Go modules, in a cache folder, once
# for each machine and version: 12 minutes on two cores. SKIP is another expression for what is
# skipped, CASES how many cases must pass then. Exit code 3: Go is not installed.
#
# What is skipped, and why:
#
#   Namespaces     their objects and they themselves are deleted by kube-controller-manager. The
#                  embedded server does that on its own, and most of these want pods, too
#   Garbage        wants the controllers of ReplicationControllers and Deployments, whose pods it
#                  counts
#   ResourceQuota  the use of a quota is computed by kube-controller-manager
#   ebhook         the other side of the webhooks, also of conversions, is a pod
#   Aggregator     the aggregated server is a pod
#   Pods, pod      a node has to run them
#   Slow           one case, in which etcd compacts what a list goes on from after five minutes
set -eu
: "${KUBECONFIG:?is not set: vmhost apiserver --for-command -- $0}"
skip=${SKIP:-Slow|ebhook|Aggregator|ResourceQuota|Garbage|Namespaces|Pods|pod}
wanted=${CASES:-42}
cd "$(dirname "$0")/kube-apiserver"
# k8s.io/kubectl v0.36.3 belongs to Kubernetes v1.36.3.
version=$(sed -n 's|^	k8s.io/kubectl v0\.\([0-9.]*\)$|v1.\1|p' go.mod)
folder="${XDG_CACHE_HOME:-$HOME/.cache}/vmhost/k8s/$version"
file="$folder/e2e.test"

if [ ! -x "$file" ]; then
  command -v go >/dev/null || exit 3
  mkdir -p "$folder"
  # One process builds; the others wait and then find the program.
  exec 9>"$folder/.lock"
  flock 9
fi
if [ ! -x "$file" ]; then
  echo "building e2e.test ($version) into $folder: 12 minutes, once" >&2
  # A module of its own: with the suite's requirements, that of kube-apiserver would be twice as
  # large, for a program that only this script needs. Its versions are the same.
  module=$(mktemp -d)
  trap 'rm -rf -- "$module"' EXIT
  cp go.mod go.sum "$module"
  cat >"$module/suite.go" <<'GO'
package suite

import _ "k8s.io/kubernetes/test/e2e"
GO
  minor=${version#v1.}
  package=k8s.io/component-base/version
  flags="-s -w -X $package.gitVersion=$version -X $package.gitMajor=1 -X $package.gitMinor=${minor%%.*}"
  (
    cd "$module"
    go mod tidy
    # Only a complete program gets the name that other processes look for.
    go test -c -trimpath -ldflags "$flags" -o "$file.unfinished" k8s.io/kubernetes/test/e2e
  ) >&2
  mv "$file.unfinished" "$file"
  exec 9>&-
fi

report=$(mktemp)
trap 'rm -rf -- "${module:-}" "$report"' EXIT
echo "skipped, for the reasons in $0: $skip" >&2
status=0
"$file" --provider=skeleton --kubeconfig="$KUBECONFIG" \
  --ginkgo.focus='\[sig-api-machinery\].*\[Conformance\]' --ginkgo.skip="$skip" --ginkgo.no-color \
  --ginkgo.v --allowed-not-ready-nodes=-1 --minStartupPods=0 --num-nodes=0 \
  --e2e-verify-service-account=false --disable-log-dump=true "$@" >"$report" 2>&1 || status=$?
# Each case that ran, and how it ended; then the failures.
grep -E '^(ok|• \[|\[FAIL\]|\[PANICKED\])' "$report" || :
grep -E '^Ran [0-9]+ of|^(SUCCESS|FAIL)!' "$report" || tail -n 50 "$report"
[ "$status" = 0 ] || exit "$status"
passed=$(sed -n 's/^.*-- \([0-9]*\) Passed.*$/\1/p' "$report")
if [ "${passed:-0}" -lt "$wanted" ]; then
  echo "${passed:-0} cases passed instead of $wanted" >&2
  exit 1
fi
