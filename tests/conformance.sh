#!/bin/sh
# Runs Kubernetes' own conformance cases of sig-api-machinery that need no nodes and no controllers
# on the server of $KUBECONFIG. On kube-apiserver alone all 46 pass in four minutes, and on the
# embedded server in three.
#
#   vmhost apiserver --for-command -- tests/conformance.sh
#   KUBECONFIG=FILE tests/conformance.sh [GINKGO-FLAG...]
#
# kubernetes.sh builds e2e.test of the version in kube-apiserver/go.mod, once for each machine and
# version: 4 to 12 minutes on two cores. SKIP is another expression for what is skipped, CASES how
# many cases must pass then. Exit code 3: Go is not installed.
#
# What is skipped, and why:
#
#   Namespaces     their objects and they themselves are deleted by kube-controller-manager. The
#                  embedded server does that on its own, and most of these want pods, too
#   Garbage        wants the controllers of ReplicationControllers and Deployments, whose pods it
#                  counts
#   ResourceQuota  the use of a quota is computed by kube-controller-manager
#   ebhook         the other side of the webhooks, also of conversions, is a pod
#   FieldSelectors its conversion webhook is a pod, too
#   Aggregator     the aggregated server is a pod
#   Pods, pod      a node has to run them
#   Slow           one case, in which etcd compacts what a list goes on from after five minutes
set -eu
: "${KUBECONFIG:?is not set: vmhost apiserver --for-command -- $0}"
skip=${SKIP:-Slow|ebhook|FieldSelectors|Aggregator|ResourceQuota|Garbage|Namespaces|Pods|pod}
wanted=${CASES:-46}
suite=$("$(dirname "$0")/kubernetes.sh" kube-apiserver e2e.test)
report=$(mktemp)
trap 'rm -rf -- "$report"' EXIT
echo "skipped, for the reasons in $0: $skip" >&2
status=0
"$suite" --provider=skeleton --kubeconfig="$KUBECONFIG" \
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
