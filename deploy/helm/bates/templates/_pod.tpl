{{/* The pod of a node: the same for the shared store and the embedded one. */}}

{{- define "bates.storeVariable" -}}
- name: BATES_STORE
  valueFrom:
    secretKeyRef:
      name: {{ .name }}
      key: {{ .key }}
{{- end -}}

{{- define "bates.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end -}}

{{- define "bates.podSecurity" -}}
runAsNonRoot: true
# The user nonroot of the image.
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
fsGroupChangePolicy: OnRootMismatch
seccompProfile:
  type: RuntimeDefault
{{- end -}}

{{/* A container that makes the store, if there is none. */}}
{{- define "bates.migrateContainer" -}}
name: migrate
image: {{ include "bates.image" . }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
args: [migrate]
env:
  {{- with .Values.store.id }}
  - name: BATES_STORE_ID
    value: {{ . | quote }}
  {{- end }}
  {{- if include "bates.isEmbedded" . }}
  - name: BATES_STORE
    value: sqlite:/var/lib/bates/data
  {{- else }}
  {{- $name := default .Values.store.postgres.secretName .Values.migrate.secretName }}
  {{- $key := ternary .Values.migrate.secretKey .Values.store.postgres.secretKey (ne .Values.migrate.secretName "") }}
  {{- include "bates.storeVariable" (dict "name" $name "key" $key) | nindent 2 }}
  {{- end }}
securityContext:
  {{- include "bates.containerSecurity" . | nindent 2 }}
resources:
  {{- toYaml .Values.resources | nindent 2 }}
{{- if include "bates.isEmbedded" . }}
volumeMounts:
  - name: data
    mountPath: /var/lib/bates
{{- end }}
{{- with include "bates.caMount" . }}
volumeMounts:
  {{- . | nindent 2 }}
{{- end }}
{{- end -}}

{{- define "bates.caMount" -}}
{{- if and (not (include "bates.isEmbedded" .)) (or .Values.store.postgres.ca.secretName .Values.store.postgres.ca.configMapName) -}}
- name: ca
  mountPath: /etc/bates/ca
  readOnly: true
{{- end -}}
{{- end -}}

{{- define "bates.caVolume" -}}
{{- if include "bates.caMount" . -}}
- name: ca
  {{- if .Values.store.postgres.ca.secretName }}
  secret:
    secretName: {{ .Values.store.postgres.ca.secretName }}
  {{- else }}
  configMap:
    name: {{ .Values.store.postgres.ca.configMapName }}
  {{- end }}
{{- end -}}
{{- end -}}

{{- define "bates.probeScheme" -}}
{{- if .Values.tls.secretName }}, scheme: HTTPS{{ end -}}
{{- end -}}

{{- define "bates.env" -}}
- name: BATES_CONFIG
  value: /etc/bates/bates.yaml
- name: BATES_HTTP
  value: 0.0.0.0:8080
- name: BATES_RESP
  value: 0.0.0.0:6380
{{- if .Values.tls.secretName }}
- name: BATES_TLS_CERTIFICATE
  value: /etc/bates/tls/tls.crt
- name: BATES_TLS_KEY
  value: /etc/bates/tls/tls.key
{{- else }}
# Without tls.secretName nodes serve plain text.
- name: BATES_PLAINTEXT
  value: allowed
{{- end }}
- name: BATES_SECRET
  valueFrom:
    secretKeyRef:
      name: {{ .Values.secret.secretName }}
      key: {{ .Values.secret.secretKey }}
{{- with .Values.store.id }}
- name: BATES_STORE_ID
  value: {{ . | quote }}
{{- end }}
{{- if include "bates.isEmbedded" . }}
- name: BATES_STORE
  value: sqlite:/var/lib/bates/data
{{- else }}
{{ include "bates.storeVariable" (dict "name" .Values.store.postgres.secretName "key" .Values.store.postgres.secretKey) }}
- name: BATES_STORE_CONNECTIONS
  value: {{ .Values.store.postgres.connections | quote }}
- name: BATES_STORE_TIMEOUT_MS
  value: {{ .Values.store.postgres.timeoutMs | quote }}
{{- end }}
{{- range $name, $token := .Values.tokens }}
- name: {{ printf "BATES_TOKENS__%s__SECRET" ($name | upper) }}
  valueFrom:
    secretKeyRef:
      name: {{ $token.secretName }}
      key: {{ $token.secretKey }}
- name: {{ printf "BATES_TOKENS__%s__MAY" ($name | upper) }}
  value: {{ join "," $token.may | quote }}
{{- with $token.series }}
- name: {{ printf "BATES_TOKENS__%s__SERIES" ($name | upper) }}
  value: {{ join "," . | quote }}
{{- end }}
{{- with $token.rate }}
- name: {{ printf "BATES_TOKENS__%s__RATE" ($name | upper) }}
  value: {{ . | quote }}
{{- end }}
{{- with $token.quota }}
- name: {{ printf "BATES_TOKENS__%s__QUOTA" ($name | upper) }}
  value: {{ . | quote }}
{{- end }}
{{- end }}
{{- range $name, $pool := .Values.pools }}
- name: {{ include "bates.variable" (printf "series.%s.pool.redis" $name) }}
  valueFrom:
    secretKeyRef:
      name: {{ $pool.redis.secretName }}
      key: {{ $pool.redis.secretKey }}
{{- end }}
{{- range $name, $pool := .Values.offeredPools }}
- name: {{ include "bates.variable" (printf "pools.%s.redis" $name) }}
  valueFrom:
    secretKeyRef:
      name: {{ $pool.redis.secretName }}
      key: {{ $pool.redis.secretKey }}
{{- end }}
{{- range $at, $secret := include "bates.secrets" . | fromYamlArray }}
- name: {{ include "bates.variable" .path }}
  {{- if hasSuffix "_file" .path }}
  value: /etc/bates/secrets/{{ $at }}/value
  {{- else }}
  valueFrom:
    secretKeyRef:
      name: {{ .secretName }}
      key: {{ .secretKey }}
  {{- end }}
{{- end }}
{{- with .Values.env }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "bates.container" -}}
name: bates
image: {{ include "bates.image" . }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
args: [serve{{ if .Values.openg2p.config }}, --openg2p-config, /etc/bates/openg2p.yaml{{ end }}]
env:
  {{- include "bates.env" . | nindent 2 }}
{{- with .Values.envFrom }}
envFrom:
  {{- toYaml . | nindent 2 }}
{{- end }}
ports:
  - name: http
    containerPort: 8080
  - name: resp
    containerPort: 6380
# Ready: the store can be written. Alive: the process answers; an unreachable store is no reason to restart it.
startupProbe:
  httpGet: {path: /readyz, port: http{{ include "bates.probeScheme" . }}}
  {{- toYaml .Values.probes.startup | nindent 2 }}
readinessProbe:
  httpGet: {path: /readyz, port: http{{ include "bates.probeScheme" . }}}
  {{- toYaml .Values.probes.readiness | nindent 2 }}
livenessProbe:
  httpGet: {path: /healthz, port: http{{ include "bates.probeScheme" . }}}
  {{- toYaml .Values.probes.liveness | nindent 2 }}
{{- if and .Values.preStopSleepSeconds (semverCompare ">=1.30-0" .Capabilities.KubeVersion.Version) }}
lifecycle:
  preStop:
    sleep:
      seconds: {{ .Values.preStopSleepSeconds }}
{{- end }}
securityContext:
  {{- include "bates.containerSecurity" . | nindent 2 }}
resources:
  {{- toYaml .Values.resources | nindent 2 }}
volumeMounts:
  - name: config
    mountPath: /etc/bates/bates.yaml
    subPath: bates.yaml
    readOnly: true
  {{- if .Values.openg2p.config }}
  - name: config
    mountPath: /etc/bates/openg2p.yaml
    subPath: openg2p.yaml
    readOnly: true
  {{- end }}
  {{- if include "bates.isEmbedded" . }}
  - name: data
    mountPath: /var/lib/bates
  {{- end }}
  {{- with include "bates.caMount" . }}
  {{- . | nindent 2 }}
  {{- end }}
  {{- if .Values.tls.secretName }}
  - name: tls
    mountPath: /etc/bates/tls
    readOnly: true
  {{- end }}
  {{- range $at, $secret := include "bates.secrets" . | fromYamlArray }}
  {{- if hasSuffix "_file" .path }}
  - name: secret-{{ $at }}
    mountPath: /etc/bates/secrets/{{ $at }}
    readOnly: true
  {{- end }}
  {{- end }}
  {{- with .Values.volumeMounts }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end -}}

{{- define "bates.spread" -}}
{{- if .Values.topologySpreadConstraints -}}
{{- toYaml .Values.topologySpreadConstraints -}}
{{- else -}}
{{- range $key := list "kubernetes.io/hostname" "topology.kubernetes.io/zone" -}}
- maxSkew: 1
  topologyKey: {{ $key }}
  whenUnsatisfiable: ScheduleAnyway
  labelSelector:
    matchLabels:
      {{- include "bates.selector" $ | nindent 6 }}
{{ end -}}
{{- end -}}
{{- end -}}

{{- define "bates.pod" -}}
metadata:
  labels:
    {{- include "bates.selector" . | nindent 4 }}
    {{- with .Values.podLabels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  annotations:
    # Pods are replaced when the configuration changes.
    checksum/config: {{ print (include "bates.config" .) (toYaml .Values.openg2p.config) | sha256sum }}
    {{- with .Values.podAnnotations }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
spec:
  serviceAccountName: {{ include "bates.serviceAccount" . }}
  automountServiceAccountToken: false
  enableServiceLinks: false
  terminationGracePeriodSeconds: {{ .Values.terminationGracePeriodSeconds }}
  securityContext:
    {{- include "bates.podSecurity" . | nindent 4 }}
  {{- with .Values.imagePullSecrets }}
  imagePullSecrets:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.priorityClassName }}
  priorityClassName: {{ . }}
  {{- end }}
  {{- if eq .Values.migrate.mode "init" }}
  initContainers:
    - {{ include "bates.migrateContainer" . | indent 6 | trim }}
  {{- end }}
  containers:
    - {{ include "bates.container" . | indent 6 | trim }}
  volumes:
    - name: config
      configMap:
        name: {{ include "bates.fullname" . }}
    {{- with include "bates.caVolume" . }}
    {{- . | nindent 4 }}
    {{- end }}
    {{- with .Values.tls.secretName }}
    - name: tls
      secret:
        secretName: {{ . }}
    {{- end }}
    {{- range $at, $secret := include "bates.secrets" . | fromYamlArray }}
    {{- if hasSuffix "_file" .path }}
    - name: secret-{{ $at }}
      secret:
        secretName: {{ .secretName }}
        items: [{key: {{ .secretKey }}, path: value}]
    {{- end }}
    {{- end }}
    {{- with .Values.volumes }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  topologySpreadConstraints:
    {{- include "bates.spread" . | trim | nindent 4 }}
  {{- with .Values.nodeSelector }}
  nodeSelector:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.affinity }}
  affinity:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end -}}
