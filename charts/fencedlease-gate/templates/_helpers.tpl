{{/* The name of what the gate consists of. */}}
{{- define "gate.name" -}}
{{- if contains "gate" .Release.Name -}}
{{ .Release.Name | trunc 50 | trimSuffix "-" }}
{{- else -}}
{{ .Release.Name | trunc 45 | trimSuffix "-" }}-gate
{{- end -}}
{{- end -}}

{{- define "gate.labels" -}}
{{ include "gate.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/part-of: fencedlease
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{- define "gate.selector" -}}
app.kubernetes.io/name: fencedlease-gate
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end -}}

{{/* Where clients find the gate. */}}
{{- define "gate.port" -}}
{{ .Values.service.port | default (ternary 8443 8080 (ne .Values.tls.secretName "")) }}
{{- end -}}

{{- define "gate.url" -}}
{{ ternary "https" "http" (ne .Values.tls.secretName "") }}://{{ include "gate.name" . }}.{{ .Release.Namespace }}.svc:{{ include "gate.port" . }}
{{- end -}}

{{/* The file of each resource's key, with the Secret that it is in, once: a FencedLease may have several paths. */}}
{{- define "gate.keys" -}}
{{- $keys := dict -}}
{{- range .Values.guards -}}
{{- $namespace := .namespace | default $.Release.Namespace -}}
{{- if and (ne $namespace $.Release.Namespace) (not .keySecret) -}}
{{- fail (printf "guards (%s/%s) has no keySecret: its key lies in namespace %s, which a pod of %s cannot mount. Copy the Secret %s-gate-key to here, keep the copy up to date, and name it in keySecret" $namespace .lease $namespace $.Release.Namespace .lease) -}}
{{- end -}}
{{- $file := printf "%s_%s" $namespace .lease -}}
{{- $secret := .keySecret | default (printf "%s-gate-key" .lease) -}}
{{- if ne (get $keys $file | default $secret) $secret -}}
{{- fail (printf "guards (%s/%s) has two keySecrets, %s and %s: a FencedLease has one" $namespace .lease (get $keys $file) $secret) -}}
{{- end -}}
{{- $_ := set $keys $file $secret -}}
{{- end -}}
{{ toJson $keys }}
{{- end -}}

{{/* What no schema can say, each with what to do. */}}
{{- define "gate.check" -}}
{{- if not .Values.backend.url -}}
{{- fail "backend.url is empty: set it to what the gate stands in front of, for example --set backend.url=http://files.shop.svc:80" -}}
{{- end -}}
{{- if ne (hasPrefix "https:" .Values.backend.url) (ne .Values.backend.caRef.name "") -}}
{{- fail "backend.url with https and backend.caRef.name go together: name the ConfigMap or Secret with the authorities of the backend's certificate, or write http://" -}}
{{- end -}}
{{- if not .Values.guards -}}
{{- fail "guards is empty, so that nothing would be passed on: say which paths belong to which FencedLease, for example --set 'guards[0].lease=report,guards[0].path=/reports/'" -}}
{{- end -}}
{{- if not .Values.persistence.enabled -}}
{{- fail "persistence.enabled is false: a gate that forgets its fences with its pod lets old holders write again. Leave it true, and give it a storageClass or an existingClaim" -}}
{{- end -}}
{{- with .Values.networkPolicy.backend -}}
{{- $selector := .podSelector | default dict -}}
{{- if and .enabled (not $selector.matchLabels) (not $selector.matchExpressions) -}}
{{- fail "networkPolicy.backend.podSelector is empty, which would close every pod of this namespace: give the labels of the backend's pods, for example matchLabels: {app: files}" -}}
{{- end -}}
{{- end -}}
{{- end -}}
