{{/* Names, labels, and checks of the values. */}}

{{- define "bates.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- define "bates.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 52 | trimSuffix "-" -}}
{{- else if contains (include "bates.name" .) .Release.Name -}}
{{- .Release.Name | trunc 52 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "bates.name" .) | trunc 52 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "bates.selector" -}}
app.kubernetes.io/name: {{ include "bates.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: node
{{- end -}}

{{- define "bates.labels" -}}
app.kubernetes.io/name: {{ include "bates.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | quote }}
{{- end -}}

{{- define "bates.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "bates.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- define "bates.image" -}}
{{- if .Values.image.digest -}}
{{- printf "%s@%s" .Values.image.repository .Values.image.digest -}}
{{- else -}}
{{- printf "%s:%s" .Values.image.repository (default .Chart.AppVersion .Values.image.tag) -}}
{{- end -}}
{{- end -}}

{{- define "bates.isEmbedded" -}}
{{- if eq .Values.store.kind "embedded" }}true{{ end -}}
{{- end -}}

{{/* bates.yaml, without secrets. The pod sets the listeners and the store. */}}
{{- define "bates.config" -}}
{{- $config := deepCopy .Values.config -}}
{{- $series := deepCopy .Values.series -}}
{{- range $name, $pool := .Values.pools -}}
{{- if not (hasKey $series $name) -}}
{{- fail (printf "pools.%s: there is no series of this name in series" $name) -}}
{{- end -}}
{{- $_ := set (get $series $name) "pool" (omit $pool "redis") -}}
{{- end -}}
{{- range $name, $one := $series -}}
{{- range $path := list (list "sink" "webhook" "secret") (list "sink" "postgres" "password") (list "documents" "password") -}}
{{- include "bates.refuseSecret" (dict "in" $one "path" $path "of" (printf "series.%s" $name) "instead" "seriesSecrets") -}}
{{- end -}}
{{- end -}}
{{- if $series -}}
{{- $_ := set $config "series" $series -}}
{{- end -}}
{{- range $name, $one := .Values.offeredSinks -}}
{{- range $path := list (list "webhook" "secret") (list "postgres" "password") -}}
{{- include "bates.refuseSecret" (dict "in" $one "path" $path "of" (printf "offeredSinks.%s" $name) "instead" "offeredSinkSecrets") -}}
{{- end -}}
{{- end -}}
{{- with .Values.offeredSinks -}}
{{- $_ := set $config "sinks" . -}}
{{- end -}}
{{- $pools := dict -}}
{{- range $name, $pool := .Values.offeredPools -}}
{{- $_ := set $pools $name (omit $pool "redis") -}}
{{- end -}}
{{- if $pools -}}
{{- $_ := set $config "pools" $pools -}}
{{- end -}}
{{- if .Values.openg2p.withoutSecret -}}
{{- $_ := set $config "openg2p_without_secret" true -}}
{{- $service := include "bates.fullname" . -}}
{{- $names := list $service (printf "%s.%s" $service .Release.Namespace) (printf "%s.%s.svc" $service .Release.Namespace) (printf "%s.%s.svc.cluster.local" $service .Release.Namespace) -}}
{{- $_ := set $config "hosts" (concat $names .Values.hosts) -}}
{{- end -}}
{{- $text := toYaml $config -}}
{{- if regexMatch "://[^/\\s@]*:[^/\\s@]+@" $text -}}
{{- fail "series or offeredSinks: an address has a password, and a ConfigMap must not hold it: name the whole address in seriesSecrets or offeredSinkSecrets" -}}
{{- end -}}
{{- $text -}}
{{- end -}}

{{/* Refuses the value at `path` of `in`, which belongs into a Secret. */}}
{{- define "bates.refuseSecret" -}}
{{- $found := .in -}}
{{- range $key := .path -}}
{{- $found = ternary (get (default dict $found) $key) nil (kindIs "map" $found) -}}
{{- end -}}
{{- if $found -}}
{{- fail (printf "%s.%s: a ConfigMap must not hold a secret: name it in %s" .of (join "." .path) .instead) -}}
{{- end -}}
{{- end -}}

{{/* A dot becomes two underscores, and a dash in a name one. */}}
{{- define "bates.variable" -}}
{{- printf "BATES_%s" (. | replace "." "__" | replace "-" "_" | upper) -}}
{{- end -}}

{{/* Secret values by reference: {path: series.…, secretName: …, secretKey: …}. */}}
{{- define "bates.secrets" -}}
{{- range .Values.seriesSecrets }}
- {{ dict "path" (printf "series.%s" .path) "secretName" .secretName "secretKey" .secretKey | toJson }}
{{- end }}
{{- range .Values.offeredSinkSecrets }}
- {{ dict "path" (printf "sinks.%s" .path) "secretName" .secretName "secretKey" .secretKey | toJson }}
{{- end }}
{{- end -}}

{{/* Refuses values that cannot work with a message, instead of pods that do not start. */}}
{{- define "bates.check" -}}
{{- if include "bates.isEmbedded" . -}}
{{- if gt (int .Values.replicas) 1 -}}
{{- fail "store.kind is embedded: its folder is opened by one node at a time, so replicas must be 1; for more, set store.kind to postgres" -}}
{{- end -}}
{{- if .Values.autoscaling.enabled -}}
{{- fail "store.kind is embedded: its folder is opened by one node at a time, so autoscaling.enabled must be false" -}}
{{- end -}}
{{- else if not .Values.store.postgres.secretName -}}
{{- fail "store.postgres.secretName: name the Secret with the address of PostgreSQL" -}}
{{- end -}}
{{- if not .Values.secret.secretName -}}
{{- fail "secret.secretName: name the Secret with the secret that clients send; without one, nodes refuse to listen beyond loopback" -}}
{{- end -}}
{{- if and .Values.ingress.enabled (not .Values.ingress.hosts) -}}
{{- fail "ingress.enabled is true: name a host in ingress.hosts" -}}
{{- end -}}
{{- if gt (int .Values.autoscaling.minReplicas) (int .Values.autoscaling.maxReplicas) -}}
{{- fail "autoscaling.minReplicas is above autoscaling.maxReplicas" -}}
{{- end -}}
{{- if ge (int .Values.preStopSleepSeconds) (int .Values.terminationGracePeriodSeconds) -}}
{{- fail "preStopSleepSeconds must be less than terminationGracePeriodSeconds" -}}
{{- end -}}
{{- if ge (add (int .Values.preStopSleepSeconds) (int .Values.config.stop_timeout_s)) (int64 .Values.terminationGracePeriodSeconds) -}}
{{- fail "preStopSleepSeconds and config.stop_timeout_s together must be less than terminationGracePeriodSeconds" -}}
{{- end -}}
{{- end -}}
