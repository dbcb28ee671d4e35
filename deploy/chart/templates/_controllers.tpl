{{- /* apart: a Deployment of their own; single: in the scheduler's process; none. */}}
{{- define "pumice.controllersMode" -}}
{{- $custom := .Values.custom }}
{{- $usual := or (eq .Release.Name "pumice") $custom.scheduler_replace_volcano }}
{{- $wanted := kindIs "invalid" $custom.controller_enable | ternary $usual $custom.controller_enable }}
{{- if not (and $wanted .Values.custom.scheduler_enable) -}}
{{ ternary "apart" "none" (and (not .Values.custom.scheduler_enable) (eq true $custom.controller_enable)) }}
{{- else -}}
{{ ternary "single" "apart" $custom.controller_single }}
{{- end }}
{{- end }}

{{- define "pumice.controllers" -}}
{{ .Release.Name }}-controllers
{{- end }}

{{- define "pumice.controllerApp" -}}
{{ .Release.Name }}-controller
{{- end }}

{{- define "pumice.controllersLease" -}}
{{ .Values.custom.scheduler_replace_volcano | ternary "vc-controller-manager" (include "pumice.controllers" .) }}
{{- end }}

{{- define "pumice.chosenControllers" -}}
{{- $chosen := .Values.custom.controller_enabled_controllers | default "*" }}
{{- $discovers := has (.Values.custom.hypernode_controller_mode | default "controller-manager") (list "controller-manager") }}
{{- $chosen }}{{ if not $discovers }},-hyperNode-controller{{ end }}
{{- end }}

{{- define "pumice.controllerLabels" -}}
app: {{ include "pumice.controllerApp" . }}
app.kubernetes.io/name: pumice
app.kubernetes.io/instance: {{ .Release.Name }}
{{- with .Values.custom.common_labels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "pumice.controllerMetadata" -}}
name: {{ include "pumice.controllers" . }}
namespace: {{ .Release.Namespace }}
labels:
  {{- include "pumice.controllerLabels" . | nindent 2 }}
{{- end }}

{{- define "pumice.controllerEnvironment" -}}
- name: KUBE_POD_NAMESPACE
  valueFrom:
    fieldRef:
      fieldPath: metadata.namespace
- name: HELM_RELEASE_NAME
  value: {{ .Release.Name }}
{{- end }}

{{- define "pumice.controllerConfig" -}}
{{- .Values.custom.controller_config_override | default "networkTopologyDiscovery: []\n" }}
{{- end }}

{{- define "pumice.controllerArguments" -}}
{{- $custom := .Values.custom }}
{{- range (kindIs "slice" $custom.scheduler_name | ternary $custom.scheduler_name (list $custom.scheduler_name | compact)) }}
- --scheduler-name={{ . }}
{{- end }}
- --enable-healthz=true
- --healthz-address=[$(POD_IP)]:11251
- --enable-metrics={{ $custom.controller_metrics_enable }}
- --listen-address=[$(POD_IP)]:8081
- --leader-elect={{ $custom.leader_elect_enable }}
{{- if $custom.leader_elect_enable }}
- --leader-elect-resource-namespace={{ .Release.Namespace }}
- --leader-elect-resource-name={{ include "pumice.controllersLease" . }}
{{- end }}
{{- if ne (include "pumice.chosenControllers" .) "*" }}
- --controllers={{ include "pumice.chosenControllers" . }}
{{- end }}
{{- with $custom.controller_kube_api_qps }}
- --kube-api-qps={{ . }}
{{- end }}
{{- with $custom.controller_kube_api_burst }}
- --kube-api-burst={{ . }}
{{- end }}
{{- with $custom.controller_worker_threads }}
- --worker-threads={{ . }}
{{- end }}
- -v={{ $custom.controller_log_level }}
{{- range $custom.controller_extra_args }}
- {{ . | quote }}
{{- end }}
{{- end }}
