{{- define "pumice.arguments" -}}
{{- $custom := .Values.custom }}
{{- range (kindIs "slice" $custom.scheduler_name | ternary $custom.scheduler_name (list $custom.scheduler_name | compact)) }}
- --scheduler-name={{ . }}
{{- end }}
{{- if eq $custom.scheduler_config_source "configmap" }}
- --scheduler-conf=configmap:{{ .Release.Namespace }}/{{ include "pumice.scheduler" . }}-configmap/{{ include "pumice.configFile" . }}
{{- else }}
- --scheduler-conf=/volcano.scheduler/{{ include "pumice.configFile" . }}
{{- end }}
- --enable-healthz=true
- --healthz-address=[$(POD_IP)]:11251
- --enable-metrics={{ $custom.scheduler_metrics_enable }}
- --listen-address=[$(POD_IP)]:8080
- --leader-elect={{ $custom.leader_elect_enable }}
{{- if $custom.leader_elect_enable }}
- --leader-elect-resource-namespace={{ .Release.Namespace }}
- --leader-elect-resource-name={{ include "pumice.lease" . }}
{{- end }}
{{- if $custom.scheduler_web_enable }}
{{- if not $custom.leader_elect_enable }}
- --leader-elect-resource-namespace={{ .Release.Namespace }}
{{- end }}
- --web-address=[$(POD_IP)]:8443
{{- range concat (list (printf "%s.%s" (include "pumice.webService" .) .Release.Namespace) (printf "%s.%s.svc" (include "pumice.webService" .) .Release.Namespace)) $custom.scheduler_web_hosts }}
- --web-hosts={{ . }}
{{- end }}
{{- if $custom.scheduler_web_tls_secret }}
- --web-cert-file=/volcano.web/tls.crt
- --web-private-key-file=/volcano.web/tls.key
{{- end }}
{{- if $custom.scheduler_web_client_ca }}
- --web-client-ca=/volcano.web-clients/ca.crt
{{- end }}
{{- end }}
{{- if eq (include "pumice.controllersMode" .) "single" }}
- --controllers={{ include "pumice.chosenControllers" . }}
- --controllers-lease-name={{ include "pumice.controllersLease" . }}
{{- end }}
{{- range $custom.scheduler_node_selector }}
- --node-selector={{ . }}
{{- end }}
{{- with $custom.scheduler_schedule_period }}
- --schedule-period={{ . }}
{{- end }}
{{- with $custom.scheduler_kube_api_qps }}
- --kube-api-qps={{ . }}
{{- end }}
{{- with $custom.scheduler_kube_api_burst }}
- --kube-api-burst={{ . }}
{{- end }}
{{- if not (kindIs "invalid" $custom.scheduler_percentage_nodes_to_find) }}
- --percentage-nodes-to-find={{ $custom.scheduler_percentage_nodes_to_find }}
{{- end }}
{{- with $custom.scheduler_plugins_dir }}
- --plugins-dir={{ . }}
{{- end }}
{{- with $custom.scheduler_feature_gates }}
- --feature-gates={{ . }}
{{- end }}
- -v={{ $custom.scheduler_log_level }}
{{- range $custom.scheduler_extra_args }}
- {{ . | quote }}
{{- end }}
{{- end }}
