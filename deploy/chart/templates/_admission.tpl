{{- define "pumice.admission" -}}
{{ .Release.Name }}-admission
{{- end }}

{{- define "pumice.admission.labels" -}}
app: {{ include "pumice.admission" . }}
app.kubernetes.io/name: pumice
app.kubernetes.io/instance: {{ .Release.Name }}
{{- with .Values.custom.common_labels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "pumice.admission.metadata" -}}
name: {{ include "pumice.admission" . }}
namespace: {{ .Release.Namespace }}
labels:
  {{- include "pumice.admission.labels" . | nindent 2 }}
{{- end }}

{{- define "pumice.admission.configFile" -}}
{{- if .Values.custom.admission_config_override }}volcano-admission.conf{{ else }}{{ base .Values.basic.admission_config_file }}{{ end }}
{{- end }}

{{- define "pumice.admission.config" -}}
{{- if .Values.custom.admission_config_override }}
{{- .Values.custom.admission_config_override }}
{{- else }}
{{- .Files.Get .Values.basic.admission_config_file | required (printf "basic.admission_config_file: this chart has no file %q; give the text as custom.admission_config_override" .Values.basic.admission_config_file) }}
{{- end }}
{{- end }}

{{- define "pumice.admission.arguments" -}}
{{- $custom := .Values.custom }}
{{- range (kindIs "slice" $custom.scheduler_name | ternary $custom.scheduler_name (list $custom.scheduler_name | compact)) }}
- --scheduler-name={{ . }}
{{- end }}
- --enabled-admission={{ $custom.enabled_admissions }}
- --admission-conf=/admission.local.config/configmap/{{ include "pumice.admission.configFile" . }}
- --webhook-namespace={{ .Release.Namespace }}
- --webhook-service-name={{ include "pumice.admission" . }}-service
- --webhook-secret-name={{ include "pumice.admission" . }}-secret
- --listen-address=[$(POD_IP)]
- --port={{ .Values.basic.admission_port }}
- --enable-healthz=true
- --healthz-address=[$(POD_IP)]:11251
{{- with $custom.admission_kube_api_qps }}
- --kube-api-qps={{ . }}
{{- end }}
{{- with $custom.admission_kube_api_burst }}
- --kube-api-burst={{ . }}
{{- end }}
{{- with $custom.admission_feature_gates }}
- --feature-gates={{ . }}
{{- end }}
- -v={{ $custom.admission_log_level }}
{{- range $custom.admission_extra_args }}
- {{ . | quote }}
{{- end }}
{{- end }}

{{- /* Refuse what could not work, before anything is installed. */}}
{{- define "pumice.admission.check" -}}
{{- $paths := list }}
{{- range .Files.Get "files/admission-paths.yaml" | fromYamlArray }}
{{- $paths = append $paths .path }}
{{- end }}
{{- range splitList "," .Values.custom.enabled_admissions }}
{{- if not (has (trim .) $paths) }}
{{- fail (printf "custom.enabled_admissions: %q is not served; there are %s" . (join ", " $paths)) }}
{{- end }}
{{- end }}
{{- range $key := list "vap_enable" "map_enable" }}
{{- if get $.Values.custom $key }}
{{- fail (printf "custom.%s: admission policies are not provided; the webhooks judge by the same rules and more" $key) }}
{{- end }}
{{- end }}
{{- end }}
