--- The three apps by which the API was accepted, in s17/, each in its own folder with its specs. What they use
--- and srv does not have yet is stood in for by s17/parts.lua: plugins of section 14, and WebSockets.
local run = dofile "tests/spec/contract/s17/run.lua"

describe("on one machine, the app", function()
  for _, app in ipairs { "news", "chat", "gateway" } do
    it(app, function() run(app, "") end)
  end
end)
