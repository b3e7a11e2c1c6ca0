{{/* The release is the application: its name is the StatefulSet's, and with a number the id of an instance. */}}
{{- define "streamworker.name" -}}
{{- if gt (len .Release.Name) 52 }}{{ fail "the release's name has more than 52 characters, which is what a StatefulSet may have" }}{{ end -}}
{{- .Release.Name -}}
{{- end }}

{{- define "streamworker.selector" -}}
app.kubernetes.io/name: streamworker
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "streamworker.labels" -}}
{{ include "streamworker.selector" . }}
app.kubernetes.io/version: {{ .Values.image.tag | default .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{- define "streamworker.serviceAccount" -}}
{{- if .Values.serviceAccount.name }}{{ .Values.serviceAccount.name }}
{{- else if .Values.serviceAccount.create }}{{ include "streamworker.name" . }}
{{- else }}default
{{- end }}
{{- end }}

{{/* The port of admin.listen in the application's file. */}}
{{- define "streamworker.port" -}}
{{- $config := fromYaml .Values.config -}}
{{- if $config.Error }}{{ fail (printf "config: %s" $config.Error) }}{{ end -}}
{{- $listen := dig "admin" "listen" "" $config | toString -}}
{{- if not (regexMatch "^(0\\.0\\.0\\.0|\\[::\\]):[0-9]+$" $listen) -}}
{{- fail "config: write admin: {listen: \"0.0.0.0:9464\", token_file: /run/secrets/streamworker/token}: Kubernetes asks for the health of pods from outside of them" -}}
{{- end -}}
{{- regexFind "[0-9]+$" $listen -}}
{{- end }}

{{/* The Secret with the token of the admin address; nothing if clients present certificates only. */}}
{{- define "streamworker.adminSecret" -}}
{{- $_ := include "streamworker.port" . -}}
{{- $admin := (fromYaml .Values.config).admin -}}
{{- if eq (dig "token_file" "" $admin) "/run/secrets/streamworker/token" -}}
{{- .Values.admin.existingSecret | default (printf "%s-admin" (include "streamworker.name" .)) -}}
{{- else if or $admin.token $admin.token_file (not (dig "tls" "client_ca" "" $admin)) -}}
{{- fail "config: write token_file: /run/secrets/streamworker/token under admin: the chart mounts a Secret there, with the token that metrics, API and dashboard ask for" -}}
{{- end -}}
{{- end }}

{{/* What a probe adds if the admin address has a certificate. */}}
{{- define "streamworker.scheme" -}}
{{- if dig "admin" "tls" "cert" "" (fromYaml .Values.config) }}, scheme: HTTPS{{ end -}}
{{- end }}

{{/* Seconds that a pod has to stop: scale_down_timeout in the application's file, and some for the last commit. */}}
{{- define "streamworker.grace" -}}
{{- $timeout := (fromYaml .Values.config).scale_down_timeout | toString -}}
{{- if not (regexMatch "^[0-9]+[smh]$" $timeout) -}}
{{- fail "config: write scale_down_timeout, in whole seconds, minutes or hours, e.g. 10m: a pod that is scaled away has so much time to hand its tasks over" -}}
{{- end -}}
{{- $unit := get (dict "s" 1 "m" 60 "h" 3600) (regexFind "[smh]$" $timeout) -}}
{{- add 30 (mul $unit (regexFind "^[0-9]+" $timeout | int)) -}}
{{- end }}
