{{- define "vmhost.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 50 | trimSuffix "-" }}
{{- end }}

{{/* The prefix of all names. Short enough for the longest ending and the names of pods. */}}
{{- define "vmhost.fullname" -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" }}
{{- else if contains (include "vmhost.name" .) .Release.Name }}
{{- .Release.Name | trunc 50 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name (include "vmhost.name" .) | trunc 50 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{/* The name of objects without a namespace: two releases in two namespaces do not share them. */}}
{{- define "vmhost.clusterName" -}}
{{- printf "%s:%s" .Release.Namespace (include "vmhost.fullname" .) }}
{{- end }}

{{- define "vmhost.selector" -}}
app.kubernetes.io/name: {{ include "vmhost.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "vmhost.labels" -}}
{{ include "vmhost.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "vmhost.serviceAccount" -}}
{{- if .Values.serviceAccount.create }}
{{- default (include "vmhost.fullname" .) .Values.serviceAccount.name }}
{{- else }}
{{- required "serviceAccount.name is required when serviceAccount.create is false" .Values.serviceAccount.name }}
{{- end }}
{{- end }}

{{- define "vmhost.image" -}}
{{- if .Values.image.digest }}
{{- printf "%s@%s" .Values.image.repository .Values.image.digest }}
{{- else }}
{{- printf "%s:%s" .Values.image.repository (default .Chart.AppVersion .Values.image.tag) }}
{{- end }}
{{- end }}

{{/* What the PodSecurity level `restricted` asks of a pod. */}}
{{- define "vmhost.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{/* And of a container. */}}
{{- define "vmhost.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end }}

{{/* The Secret with the token of orders; empty if each pod makes a token of its own. */}}
{{- define "vmhost.adminSecret" -}}
{{- if .Values.admin.tokenSecret }}
{{- .Values.admin.tokenSecret }}
{{- else if .Values.admin.createToken }}
{{- include "vmhost.fullname" . }}-admin
{{- end }}
{{- end }}

{{/* Whether /metrics is served over TLS; empty if not. */}}
{{- define "vmhost.metricsTls" -}}
{{- if or (eq .Values.metrics.access "token") .Values.metrics.certSecret }}true{{- end }}
{{- end }}

{{/* The port of /metrics: controller-runtime's for each way. */}}
{{- define "vmhost.metricsPort" -}}
{{- ternary 8443 8080 (not (empty (include "vmhost.metricsTls" .))) }}
{{- end }}

{{/* Whether the host's authority for webhooks is in a Secret that it writes. */}}
{{- define "vmhost.ownAuthority" -}}
{{- if and .Values.webhooks.enabled (not .Values.webhooks.certSecret) }}true{{- end }}
{{- end }}

{{/* A role and its binding to the host's service account: in a namespace, or else in the cluster.
     Takes `root`, `name`, `namespace`, and `rules` as text. */}}
{{- define "vmhost.role" }}
{{- $kind := ternary "Role" "ClusterRole" (not (empty .namespace)) }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ $kind }}
metadata:
  name: {{ .name }}
  {{- with .namespace }}
  namespace: {{ . }}
  {{- end }}
  labels:
    {{- include "vmhost.labels" .root | nindent 4 }}
rules:
  {{- .rules | trim | nindent 2 }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ $kind }}Binding
metadata:
  name: {{ .name }}
  {{- with .namespace }}
  namespace: {{ . }}
  {{- end }}
  labels:
    {{- include "vmhost.labels" .root | nindent 4 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: {{ $kind }}
  name: {{ .name }}
subjects:
  - kind: ServiceAccount
    name: {{ include "vmhost.serviceAccount" .root }}
    namespace: {{ .root.Release.Namespace }}
{{- end }}
