-- Health of an InferenceService for Argo CD: resource.customizations.health.finetune.dev_InferenceService
hs = { status = "Progressing", message = "Waiting for the operator" }
if obj.status == nil or obj.status.observedGeneration == nil then
  return hs
end
if obj.metadata.generation ~= nil and obj.status.observedGeneration < obj.metadata.generation then
  hs.message = "Waiting for the operator to see the newest change"
  return hs
end
hs.message = obj.status.phase or "Pending"
local found = {}
for _, condition in ipairs(obj.status.conditions or {}) do
  found[condition.type] = condition
end
local function is(type)
  return found[type] ~= nil and found[type].status == "True"
end
if is("Suspended") then
  return { status = "Suspended", message = found.Suspended.message or "Suspended" }
end
if is("Degraded") or obj.status.phase == "Failed" then
  local why = found.Degraded or found.Ready or {}
  return { status = "Degraded", message = (why.reason or "Failed") .. ": " .. (why.message or "") }
end
if is("Ready") then
  return { status = "Healthy", message = found.Ready.message or "Ready" }
end
if found.ModelResolved ~= nil and found.ModelResolved.status == "False" then
  hs.message = found.ModelResolved.message or hs.message
end
return hs
