{{/* The name of what the operator consists of. */}}
{{- define "fencedlease.operator" -}}
{{- if contains "fencedlease" .Release.Name -}}
{{ .Release.Name | trunc 50 | trimSuffix "-" }}-operator
{{- else -}}
{{ .Release.Name | trunc 38 | trimSuffix "-" }}-fencedlease-operator
{{- end -}}
{{- end -}}

{{- define "fencedlease.redis" -}}
{{ include "fencedlease.operator" . | trimSuffix "-operator" }}-redis
{{- end -}}

{{/* The policy that looks at pods which ask for a lease. */}}
{{- define "fencedlease.guardedPods" -}}
{{ include "fencedlease.operator" . | trimSuffix "-operator" }}-guarded-pods
{{- end -}}

{{- define "fencedlease.labels" -}}
app.kubernetes.io/name: fencedlease
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/part-of: fencedlease
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{- define "fencedlease.selector" -}}
app.kubernetes.io/name: fencedlease
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{/* An image of ours: its tag is the chart's appVersion unless it is set. */}}
{{- define "fencedlease.image" -}}
{{ .image.repository }}:{{ .image.tag | default .chart.AppVersion }}
{{- end -}}

{{- define "fencedlease.redisAddresses" -}}
{{- if .Values.redis.embedded -}}
{{ include "fencedlease.redis" . }}.{{ .Release.Namespace }}.svc:6379
{{- else -}}
{{ join "," .Values.redis.addresses }}
{{- end -}}
{{- end -}}

{{- define "fencedlease.redisSecret" -}}
{{- if .Values.redis.embedded -}}
{{ include "fencedlease.redis" . }}
{{- else -}}
{{ .Values.redis.auth.secretRef.name }}
{{- end -}}
{{- end -}}

{{- define "fencedlease.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: { drop: [ALL] }
{{- end -}}
