-- Health of a FineTuneJob for Argo CD: resource.customizations.health.finetune.dev_FineTuneJob
hs = { status = "Progressing", message = "Waiting for the operator" }
if obj.status == nil or obj.status.observedGeneration == nil then
  return hs
end
if obj.metadata.generation ~= nil and obj.status.observedGeneration < obj.metadata.generation then
  hs.message = "Waiting for the operator to see the newest change"
  return hs
end
hs.message = obj.status.phase or "Pending"
for _, condition in ipairs(obj.status.conditions or {}) do
  if condition.status == "True" then
    if condition.type == "Failed" then
      return { status = "Degraded", message = condition.reason .. ": " .. (condition.message or "") }
    end
    if condition.type == "Succeeded" then
      return { status = "Healthy", message = condition.message or "Succeeded" }
    end
    if condition.type == "Suspended" then
      return { status = "Suspended", message = condition.message or "Suspended" }
    end
  end
end
if obj.status.progress ~= nil and obj.status.progress.display ~= nil and obj.status.phase == "Training" then
  hs.message = "Training, step " .. (obj.status.progress.display.step or "?")
end
return hs
