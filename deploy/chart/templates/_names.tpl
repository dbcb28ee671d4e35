{{- define "pumice.scheduler" -}}
{{ .Release.Name }}-scheduler
{{- end }}

{{- define "pumice.lease" -}}
{{ .Values.custom.leader_elect_resource_name | default (.Values.custom.scheduler_replace_volcano | ternary "volcano" .Release.Name) }}
{{- end }}

{{- define "pumice.labels" -}}
app: {{ include "pumice.scheduler" . }}
app.kubernetes.io/name: pumice
app.kubernetes.io/instance: {{ .Release.Name }}
{{- with .Values.custom.common_labels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "pumice.metadata" -}}
name: {{ include "pumice.scheduler" . }}
namespace: {{ .Release.Namespace }}
labels:
  {{- include "pumice.labels" . | nindent 2 }}
{{- end }}

{{- define "pumice.image" -}}
{{- $tag := .Values.basic.scheduler_image_tag_version | default .Values.basic.image_tag_version | default .Chart.AppVersion -}}
{{- with .Values.basic.image_registry }}{{ trimSuffix "/" . }}/{{ end }}{{ .Values.basic.scheduler_image_name }}:{{ $tag }}
{{- end }}

{{- define "pumice.configFile" -}}
{{- if .Values.custom.scheduler_config_override }}volcano-scheduler.conf{{ else }}{{ base .Values.basic.scheduler_config_file }}{{ end }}
{{- end }}

{{- define "pumice.config" -}}
{{- if .Values.custom.scheduler_config_override }}
{{- .Values.custom.scheduler_config_override }}
{{- else }}
{{- .Files.Get .Values.basic.scheduler_config_file | required (printf "basic.scheduler_config_file: this chart has no file %q; give the text as custom.scheduler_config_override" .Values.basic.scheduler_config_file) }}
{{- end }}
{{- end }}

{{- define "pumice.webService" -}}
{{ include "pumice.scheduler" . }}-web
{{- end }}
