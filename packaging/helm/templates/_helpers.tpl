{{- define "nodeyard.selector" -}}
app.kubernetes.io/name: nodeyard
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "nodeyard.labels" -}}
{{ include "nodeyard.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- define "nodeyard.security" -}}
{{- if .privileged }}
privileged: true
runAsUser: 0
{{- else }}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}
{{- end }}
