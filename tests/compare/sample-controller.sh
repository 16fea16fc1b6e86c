#!/usr/bin/env bash
# Prints what a user of Foos sees, as text. Run it against upstream's sample-controller and against
# vmhost with examples/foo, and compare the outputs.
#
#   tests/compare/sample-controller.sh KUBECONFIG > facts.txt
#   tests/compare/sample-controller.sh KUBECONFIG --unequal
#
# With --unequal it also prints what may differ: field managers, and how often an Event was counted.
# The controller must already run, on a cluster without a kube-controller-manager, because this
# script writes the status of Deployments in its place. Needs kubectl and jq. Creates a namespace
# and deletes it. The output contains no names, uids or times that change between runs.
set -euo pipefail

export KUBECONFIG=${1:?usage: $0 KUBECONFIG [--unequal]}
unequal=${2:-}
here=$(cd "$(dirname "$0")" && pwd)
namespace=foo-$(date +%s)
deadline=60

k() { kubectl --namespace "$namespace" "$@"; }
trap 'kubectl delete namespace "$namespace" --wait=false >/dev/null' EXIT

section() { printf '\n== %s\n' "$*"; }
fail() { echo "sample-controller.sh: $*" >&2; exit 1; }

# until TEXT COMMAND...: waits until the command succeeds.
until_() {
  local what=$1 end=$((SECONDS + deadline))
  shift
  until "$@" >/dev/null 2>&1; do
    ((SECONDS < end)) || fail "not within $deadline s: $what"
    sleep 0.1
  done
  echo "$what: yes"
}

# is KIND NAME FILTER: tests whether the object, as JSON, passes the jq filter.
is() { k get "$1" "$2" -o json | jq -e "$3"; }
absent() { ! k get "$1" "$2" -o name 2>/dev/null; }
# until_is KIND NAME FILTER [TEXT]: waits until `is` succeeds. A filter with a uid or a version
# needs a text.
until_is() { until_ "$1 $2: ${4:-$3}" is "$1" "$2" "$3"; }

foo() { # NAME SPEC
  k create -f - >/dev/null <<<"{\"apiVersion\":\"samplecontroller.k8s.io/v1alpha1\",\"kind\":\"Foo\",\"metadata\":{\"name\":\"$1\"},\"spec\":$2}"
}
edit() { k patch "$1" "$2" --type=merge -p "$3" >/dev/null; }
available() { k patch deployment "$1" --subresource=status --type=merge -p "{\"status\":{\"replicas\":$2,\"availableReplicas\":$2,\"readyReplicas\":$2}}" >/dev/null; }
uid() { k get "$1" "$2" -o jsonpath='{.metadata.uid}'; }

# deployment NAME FOO: prints all that the controller decides. Compares the owner's uid instead of
# printing it.
deployment() {
  k get deployment "$1" -o json | jq -S --arg uid "$(uid foo "$2" 2>/dev/null)" '{
    labels: .metadata.labels, annotations: .metadata.annotations, finalizers: .metadata.finalizers,
    owners: [.metadata.ownerReferences[]? | .uid = (if .uid == $uid then "of the Foo" else "another" end)],
    spec
  }'
}
status() { k get foo "$1" -o json | jq -S -c '{labels: .metadata.labels, annotations: .metadata.annotations, finalizers: .metadata.finalizers, spec, status}'; }

# events NAME: prints each sort of Event about the Foo once, with the source that "kubectl describe"
# shows.
events() {
  k get events --field-selector "involvedObject.kind=Foo,involvedObject.name=$1" -o json | jq -r '
    [.items[] | "\(.type) \(.reason) from \(.source.component // .reportingComponent): \(.message)"] | unique[]'
}
has_event() { events "$1" | grep -q "$2"; }
until_event() { until_ "Event $2 of $1" has_event "$1" "$2"; }

# Waits until a new Foo is synced: the controller has then seen all earlier changes.
markers=0
marker() {
  markers=$((markers + 1))
  foo "marker-$markers" "{\"deploymentName\":\"marker-$markers\",\"replicas\":1}"
  until_ "a Foo made later is synced" has_event "marker-$markers" Synced
}

kubectl apply -f "$here/../../examples/foo/manifests/crd.yaml" >/dev/null
kubectl wait --for=condition=Established crd/foos.samplecontroller.k8s.io >/dev/null
kubectl create namespace "$namespace" >/dev/null

section "a Foo is created"
k create -f "$here/../../examples/foo/manifests/example-foo.yaml" >/dev/null
until_is deployment example-foo '.spec.replicas == 1'
until_is foo example-foo '.status.availableReplicas == 0'
until_event example-foo Synced
deployment example-foo example-foo
status example-foo
events example-foo

section "the Deployment becomes available"
available example-foo 1
until_is foo example-foo '.status.availableReplicas == 1'
status example-foo

section "replicas are edited by hand"
k scale deployment example-foo --replicas=5 >/dev/null
until_is deployment example-foo '.spec.replicas == 1'

section "the image is edited by hand"
k set image deployment/example-foo nginx=nginx:mine >/dev/null
available example-foo 2
until_is foo example-foo '.status.availableReplicas == 2'
marker
until_is deployment example-foo '.spec.template.spec.containers[0].image == "nginx:mine"'

section "image, labels, annotations and a sidecar are edited by hand, then the Foo is scaled"
edit deployment example-foo '{"metadata":{"labels":{"mine":"1"},"annotations":{"mine":"1"}},"spec":{"template":{"spec":{"containers":[{"name":"nginx","image":"nginx:mine"},{"name":"sidecar","image":"sidecar:mine"}]}}}}'
edit foo example-foo '{"spec":{"replicas":3}}'
until_is deployment example-foo '.spec.replicas == 3'
deployment example-foo example-foo
until_is foo example-foo '.status.availableReplicas == 2'
status example-foo

section "the Deployment is deleted"
before=$(uid deployment example-foo)
k delete deployment example-foo >/dev/null
until_is deployment example-foo ".metadata.uid != \"$before\"" "made again"
until_is foo example-foo '.status.availableReplicas == 0'
deployment example-foo example-foo

section "a user writes another status"
k patch foo example-foo --subresource=status --type=merge -p '{"status":{"availableReplicas":9}}' >/dev/null
until_is foo example-foo '.status.availableReplicas == 0'

section "a Foo without replicas"
foo free '{"deploymentName":"free"}'
until_is deployment free '.spec.replicas == 1'
k scale deployment free --replicas=4 >/dev/null
available free 4
until_is foo free '.status.availableReplicas == 4'
marker
until_is deployment free '.spec.replicas == 4'
status free

section "a Deployment of another owner has the name"
k create deployment taken --image=other --replicas=2 >/dev/null
version=$(k get deployment taken -o jsonpath='{.metadata.resourceVersion}')
foo taker '{"deploymentName":"taken","replicas":3}'
until_event taker ErrResourceExists
marker
until_is deployment taken ".metadata.resourceVersion == \"$version\" and .spec.replicas == 2" "not touched"
status taker
events taker
k delete deployment taken >/dev/null
until_is deployment taken '.spec.replicas == 3'
until_event taker Synced
events taker

section "one name is taken, then another"
for name in theirs-1 theirs-2; do k create deployment $name --image=other >/dev/null; done
foo unlucky '{"deploymentName":"theirs-1","replicas":3}'
until_event unlucky 'Resource "theirs-1"'
edit foo unlucky '{"spec":{"deploymentName":"theirs-2"}}'
until_event unlucky 'Resource "theirs-2"'
status unlucky
events unlucky
for name in theirs-1 theirs-2; do is deployment $name '.spec.replicas == 1 and .metadata.ownerReferences == null'; done

section "a Foo without a deploymentName"
foo nameless '{"replicas":1}'
foo empty '{"deploymentName":"","replicas":1}'
marker
for name in nameless empty; do
  status $name
  events $name
done
edit foo nameless '{"spec":{"deploymentName":"named"}}'
until_is deployment named '.spec.replicas == 1'
until_event nameless Synced

section "the deploymentName changes"
edit foo nameless '{"spec":{"deploymentName":"renamed"}}'
until_is deployment renamed '.spec.replicas == 1'
marker
deployment renamed nameless | jq -c '{owners, replicas: .spec.replicas}'
deployment named nameless | jq -c '{owners, replicas: .spec.replicas}'
k scale deployment named --replicas=7 >/dev/null
marker
until_is deployment named '.spec.replicas == 7'

section "the deploymentName is no name"
foo invalid '{"deploymentName":"No_Name","replicas":1}'
marker
status invalid

section "the Foo is deleted (there is no garbage collector here)"
k delete foo example-foo >/dev/null
marker
deployment example-foo example-foo | jq -c '{owners, replicas: .spec.replicas}'
k scale deployment example-foo --replicas=6 >/dev/null
marker
until_is deployment example-foo '.spec.replicas == 6'

section "a new Foo of that name does not own the old Deployment"
foo example-foo '{"deploymentName":"example-foo","replicas":1}'
until_event example-foo ErrResourceExists
until_is deployment example-foo '.spec.replicas == 6'
k delete deployment example-foo >/dev/null
until_is deployment example-foo '.spec.replicas == 1'
deployment example-foo example-foo | jq -c '{owners, replicas: .spec.replicas}'

section "Foo and Deployment are deleted"
k delete foo example-foo >/dev/null
k delete deployment example-foo >/dev/null
marker
until_ "no Deployment example-foo" absent deployment example-foo

if [[ $unequal == --unequal ]]; then
  section "Events about a deploymentName that is no name (may differ)"
  events invalid
  section "field managers (may differ)"
  k get deployment free -o json --show-managed-fields | jq -r '.metadata.managedFields[] | "Deployment: \(.operation) \(.subresource // "object") by \(.manager)"'
  k get foo free -o json --show-managed-fields | jq -r '.metadata.managedFields[] | "Foo: \(.operation) \(.subresource // "object") by \(.manager)"'
  section "Events (may differ)"
  k get events -o json | jq -r '.items[] | select(.involvedObject.kind == "Foo" and (.involvedObject.name | startswith("marker") | not)) |
    "\(.involvedObject.name) \(.reason) count=\(.count) series=\(.series.count) action=\(.action) instance=\(if .reportingInstance == "" then "none" else "given" end)"' | sort
fi
