--- @NAME@: pages, a form, and a session that keeps what the form was given.
local srv = require "srv"

local app = srv.app()

-- srv.csrf refuses what a page of another site sends in the name of our visitors.
app:use(srv.helmet(), srv.csrf(), srv.session { ttl = "30d" })
app:static("/", "public", { max_age = "1h" })

local NOTES_MAX = 20

local note = srv.schema { text = "string 1..200 trim" }

app:get("/", { name = "home" }, function(req, res)
  return res:render("home", {
    notes = req.session.notes or {},
    said = req.session:flash "said" or false,
    fault = req.session:flash "fault" or false,
  })
end)

app:post("/notes", { name = "add" }, function(req, res)
  local given, err = note:check(req:form())
  if err then
    req.session:flash("fault", "A note has 1 to 200 characters.")
    return res:redirect("/", 303)
  end
  local notes = req.session.notes or {}
  table.insert(notes, 1, given.text)
  notes[NOTES_MAX + 1] = nil
  req.session.notes = notes
  req.session:flash("said", "Noted.")
  return res:redirect("/", 303)
end)

app:post("/forget", { name = "forget" }, function(req, res)
  req.session.notes = nil
  req.session:flash("said", "All is forgotten.")
  return res:redirect("/", 303)
end)

app:get("/about", { name = "about" }, function(_, res) return res:render "about" end)

app:not_found(function(_, res)
  return res:status(404):render "missing"
end)

return app
