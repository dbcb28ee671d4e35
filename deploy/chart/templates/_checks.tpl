{{- /* Values that have an effect, and values of Volcano's scheduler that have none here. The rest belongs to other components. */}}
{{- define "pumice.known" -}}
basic:
  - image_registry
  - scheduler_image_name
  - image_tag_version
  - scheduler_image_tag_version
  - image_pull_policy
  - image_pull_secret
  - scheduler_config_file
  - admission_config_file
  - admission_port
custom:
  - scheduler_enable
  - scheduler_replicas
  - leader_elect_enable
  - leader_elect_resource_name
  - scheduler_replace_volcano
  - scheduler_name
  - scheduler_config_override
  - scheduler_config_source
  - scheduler_node_selector
  - scheduler_schedule_period
  - scheduler_kube_api_qps
  - scheduler_kube_api_burst
  - scheduler_percentage_nodes_to_find
  - scheduler_plugins_dir
  - scheduler_feature_gates
  - scheduler_log_level
  - scheduler_extra_args
  - scheduler_metrics_enable
  - scheduler_flow_schema_enable
  - scheduler_pdb_enable
  - scheduler_web_enable
  - scheduler_web_hosts
  - scheduler_web_tls_secret
  - scheduler_web_client_ca
  - scheduler_resources
  - scheduler_sc
  - scheduler_main_csc
  - scheduler_ns
  - scheduler_affinity
  - scheduler_tolerations
  - scheduler_labels
  - scheduler_podLabels
  - controller_enable
  - controller_single
  - controller_replicas
  - controller_enabled_controllers
  - hypernode_controller_mode
  - controller_config_override
  - controller_kube_api_qps
  - controller_kube_api_burst
  - controller_worker_threads
  - controller_log_level
  - controller_extra_args
  - controller_metrics_enable
  - controller_flow_schema_enable
  - controller_resources
  - controller_sc
  - controller_main_csc
  - controller_ns
  - controller_affinity
  - controller_tolerations
  - controller_labels
  - controller_podLabels
  - default_sc
  - default_csc
  - default_ns
  - default_affinity
  - default_tolerations
  - common_labels
  - admission_enable
  - admission_replicas
  - enabled_admissions
  - webhooks_failure_policy
  - webhooks_namespace_selector_expressions
  - admission_config_override
  - admission_kube_api_qps
  - admission_kube_api_burst
  - admission_feature_gates
  - admission_log_level
  - admission_extra_args
  - admission_resources
  - admission_sc
  - admission_main_csc
  - admission_ns
  - admission_affinity
  - admission_tolerations
  - admission_labels
  - admission_podLabels
{{- end }}

{{- define "pumice.withoutEffect" -}}
- scheduler_node_worker_threads
- scheduler_pprof_enable
- scheduler_sharding_mode
- controller_worker_threads_for_cronjob
- controller_worker_threads_for_podgroup
- controller_worker_threads_for_queue
- controller_worker_threads_for_gc
{{- end }}

{{- /* Refuse what could not work, before anything is installed. */}}
{{- define "pumice.check" -}}
{{- $custom := .Values.custom }}
{{- $known := concat (include "pumice.known" . | fromYaml).custom (include "pumice.withoutEffect" . | fromYamlArray) }}
{{- range $key := keys $custom | sortAlpha }}
{{- if and (or (hasPrefix "scheduler_" $key) (hasPrefix "controller_" $key) (hasPrefix "leader_elect" $key)) (not (has $key $known)) }}
{{- fail (printf "custom.%s: there is no such value; those that exist are in values.yaml (helm show values)" $key) }}
{{- end }}
{{- end }}
{{- if and (eq .Release.Name "volcano") (not $custom.scheduler_replace_volcano) }}
{{- fail "the names and the Lease of a release volcano are those of Volcano's scheduler; take its place with custom.scheduler_replace_volcano, or choose another name" }}
{{- end }}
{{- if not (or (eq .Release.Name "pumice") $custom.scheduler_replace_volcano $custom.scheduler_name) }}
{{- fail (printf "custom.scheduler_name: without a name of its own release %s would serve the same pods as others do, schedulerName volcano; set it, such as to %s" .Release.Name .Release.Name) }}
{{- end }}
{{- if contains "vc-scheduler" .Values.basic.scheduler_image_name }}
{{- fail (printf "basic.scheduler_image_name: %q is Volcano's scheduler; remove this value, or name an image of Pumice" .Values.basic.scheduler_image_name) }}
{{- end }}
{{- if not (has ($custom.scheduler_sharding_mode | default "none") (list "none")) }}
{{- fail (printf "custom.scheduler_sharding_mode: %q is not provided, only none; custom.scheduler_node_selector gives each scheduler nodes of its own" $custom.scheduler_sharding_mode) }}
{{- end }}
{{- if not (has ($custom.hypernode_controller_mode | default "controller-manager") (list "controller-manager" "disabled")) }}
{{- fail (printf "custom.hypernode_controller_mode: %q is not provided, only controller-manager and disabled" $custom.hypernode_controller_mode) }}
{{- end }}
{{- if not $custom.scheduler_web_enable }}
{{- range $key := list "scheduler_web_hosts" "scheduler_web_tls_secret" "scheduler_web_client_ca" }}
{{- if get $custom $key }}
{{- fail (printf "custom.%s: the page is not served; set custom.scheduler_web_enable" $key) }}
{{- end }}
{{- end }}
{{- end }}
{{- if and (gt (int $custom.controller_replicas) 1) (not $custom.leader_elect_enable) }}
{{- fail (printf "custom.controller_replicas: %d controllers that all work at once would count the same things twice; set custom.leader_elect_enable" (int $custom.controller_replicas)) }}
{{- end }}
{{- if and (gt (int $custom.scheduler_replicas) 1) (not $custom.leader_elect_enable) }}
{{- fail (printf "custom.scheduler_replicas: %d schedulers that all decide at once would take the same room twice; set custom.leader_elect_enable" (int $custom.scheduler_replicas)) }}
{{- end }}
{{- end }}
