{{- define "heph.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{- define "heph.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else if contains (include "heph.name" .) .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "heph.name" .) | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "heph.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{ include "heph.selector" . }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* What selects the pods of this release; with a component it selects one kind of them. */}}
{{- define "heph.selector" -}}
app.kubernetes.io/name: {{ include "heph.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "heph.serverSelector" -}}
{{ include "heph.selector" . }}
app.kubernetes.io/component: server
{{- end -}}

{{- define "heph.sandboxSelector" -}}
{{ include "heph.selector" . }}
app.kubernetes.io/component: sandbox
{{- end -}}

{{- define "heph.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "heph.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- define "heph.image" -}}
{{- $image := .image -}}
{{- if $image.digest -}}
{{- printf "%s@%s" $image.repository $image.digest -}}
{{- else -}}
{{- printf "%s:%s" $image.repository (default .version $image.tag) -}}
{{- end -}}
{{- end -}}

{{/* The capacity of the installation: the one place that reads it. Everything that must agree with it asks here. */}}
{{- define "heph.conversationTurns" -}}
{{- int .Values.sandbox.conversationTurns -}}
{{- end -}}

{{- define "heph.warmReplicas" -}}
{{- if kindIs "invalid" .Values.sandbox.kubernetes.warmReplicas -}}
{{- div (add (int (include "heph.conversationTurns" .)) 3) 4 -}}
{{- else -}}
{{- int .Values.sandbox.kubernetes.warmReplicas -}}
{{- end -}}
{{- end -}}

{{- define "heph.onKubernetes" -}}
{{- if eq .Values.sandbox.host "kubernetes" }}true{{ end -}}
{{- end -}}

{{- define "heph.sandboxNamespace" -}}
{{- default .Release.Namespace .Values.sandbox.kubernetes.namespace -}}
{{- end -}}

{{- define "heph.podSecurity" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
fsGroup: 10001
seccompProfile: { type: RuntimeDefault }
{{- end -}}

{{- define "heph.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: { drop: [ALL] }
{{- end -}}

{{/* One variable from a Secret that somebody else made: dict "name" "secret" "key". */}}
{{- define "heph.secretVariable" -}}
- name: {{ .name }}
  valueFrom:
    secretKeyRef: { name: {{ .secret | quote }}, key: {{ .key | quote }} }
{{- end -}}
