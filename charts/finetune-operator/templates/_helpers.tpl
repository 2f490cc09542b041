{{- define "finetune-operator.name" -}}
{{ .Release.Name | trunc 52 | trimSuffix "-" }}
{{- end }}

{{- define "finetune-operator.labels" -}}
{{ include "finetune-operator.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | quote }}
{{- end }}

{{- define "finetune-operator.selector" -}}
app.kubernetes.io/name: finetune-operator
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "finetune-operator.serviceAccount" -}}
{{ .Values.serviceAccount.name | default (include "finetune-operator.name" .) }}
{{- end }}

{{- /* The full name of an image: pass the root and the image's values. */}}
{{- define "finetune-operator.image" -}}
{{- if .image.digest -}}
{{ .image.repository }}@{{ .image.digest }}
{{- else -}}
{{ .image.repository }}:{{ .image.tag | default .root.Chart.AppVersion }}
{{- end -}}
{{- end }}
