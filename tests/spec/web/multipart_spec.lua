local srv = require "srv"

local FORM = { ["Content-Type"] = "multipart/form-data; boundary=B" }

local function client_of(handler, opts)
  local app = srv.app()
  app:post("/", opts or { body_limit = "10MiB" }, handler)
  return srv.test(app)
end

--- A body of parts, each { disposition, content, other lines }.
local function raw(...)
  local pieces = {}
  for _, part in ipairs { ... } do
    pieces[#pieces + 1] = ("--B\r\nContent-Disposition: form-data; %s\r\n%s\r\n%s\r\n"):format(part[1], part[3] or "", part[2])
  end
  return table.concat(pieces) .. "--B--\r\n"
end

local function post(t, body) return t:post("/", { body = body, headers = FORM }) end

--- The problem that RAW(...) is answered with, by its code.
local function fault(t, status, code, body)
  post(t, body):expect(status):expect { code = code }
end

local function shown(file)
  return { field = file.field, name = file.name, type = file.type, size = file.size, path = file.path ~= nil, bytes = file:bytes() }
end

local function show(req)
  local fields, files = req:multipart()
  return { fields = fields, files = srv.map(files, shown) }
end

local function exists(path) return srv.fs.stat(path) ~= nil end

describe("req:multipart", function()
  it("gives fields, flat as a form's, and files in the order they came", function()
    post(client_of(show), raw({ "name=t", "v" }, { 'name="f"; filename="a.txt"', "hi", "Content-Type: Text/Plain; charset=x\r\n" },
      { "name=t", "é" }, { "name=g; filename=b", "" }, { 'name="a[b]"', "" })):expect {
      fields = { t = { "v", "é" }, ["a[b]"] = "" },
      files = {
        { field = "f", name = "a.txt", type = "text/plain", size = 2, path = false, bytes = "hi" },
        { field = "g", name = "b", type = "application/octet-stream", size = 0, path = false, bytes = "" },
      },
    }
  end)

  it("reads what the client and the tests write", function()
    local sent = { a = { "1", 2 }, ['q"\r\n'] = true, f = { body = "\0\r\n--", name = 'x"y\\z.bin', type = "image/png" } }
    client_of(function(req)
      local fields, files = req:multipart()
      return { fields = fields, name = files[1].name, type = files[1].type, whole = files[1]:bytes() == sent.f.body }
    end):post("/", { multipart = sent }):expect {
      fields = { a = { "1", "2" }, ['q"\r\n'] = "true" }, name = "z.bin", type = "image/png", whole = true,
    }
  end)

  it("is nil without a body, and 415 for another type", function()
    local t = client_of(function(req) return { none = req:multipart() == nil } end)
    t:post("/"):expect { none = true }
    t:post("/", { body = "x", headers = { ["Content-Type"] = "text/plain" } }):expect(415):expect {
      detail = "the body must be a multipart form (Content-Type: multipart/form-data); it is text/plain",
    }
  end)

  it("passes over a file that was not chosen", function()
    post(client_of(show), raw({ 'name=f; filename=""', "" }, { 'name=f; filename=""', "x" })):expect(function(r)
      local files = r:json().files
      return #files == 1 and files[1].name == "unnamed" and files[1].bytes == "x"
    end)
  end)

  it("takes a form without parts", function()
    post(client_of(show), "--B--\r\n"):expect '{"fields":{},"files":[]}'
  end)

  it("keeps traps harmless", function()
    post(client_of(show), raw({ "name=__proto__", "x" }, { "name=__index", "y" }, { 'name=f; filename="../../a\tb"', "" })):expect {
      fields = { __proto__ = "x", __index = "y" }, files = { { name = "ab" } },
    }
  end)

  it("answers what is malformed with bad_multipart", function()
    local t = client_of(show)
    fault(t, 400, "bad_multipart", "--B\r\nContent-Disposition: form-data; name=t\r\n\r\nunfinished")
    fault(t, 400, "bad_multipart", raw { "filename=a", "x" })
    fault(t, 400, "bad_multipart", raw { "name=t", "\255" })
    fault(t, 400, "bad_multipart", "--A--")
    fault(t, 415, "bad_multipart", raw { "name=t", "eA==", "Content-Transfer-Encoding: base64\r\n" })
    fault(t, 413, "bad_multipart", raw { "name=t", "x", "X: " .. ("x"):rep(16384) .. "\r\n" })
    t:post("/", { body = raw(), headers = { ["Content-Type"] = "multipart/form-data" } }):expect(400)
      :expect { code = "bad_multipart", detail = "the Content-Type has no boundary" }
  end)

  it("bounds files and fields", function()
    local t = client_of(function(req) return { #select(2, req:multipart { files = 1, fields = 2, file_limit = "1KiB" }) } end)
    local kib = ("x"):rep(1024)
    post(t, raw({ "name=a", "1" }, { "name=a", "2" }, { "name=f; filename=f", kib })):expect { 1 }
    fault(t, 413, "bad_multipart", raw({ "name=a", "1" }, { "name=b", "2" }, { "name=c", "3" }))
    fault(t, 413, "bad_multipart", raw({ "name=f; filename=f", "1" }, { "name=f; filename=f", "2" }))
    fault(t, 413, "content_too_large", raw { "name=f; filename=f", kib .. "x" })
    fault(client_of(show, { body_limit = "20MiB" }), 413, "content_too_large", raw { "name=t", ("x"):rep(8 * 1024 * 1024 + 1) })
    local default = client_of(show)
    local parts = {}
    for i = 1, 11 do parts[i] = { "name=f; filename=f", "" } end
    fault(default, 413, "bad_multipart", raw(unpack(parts)))
  end)

  it("puts what is over its memory into files that end with the request", function()
    local big, paths = ("0123456789abcdef"):rep(40000), {}
    local answer = post(client_of(function(req)
      local _, files = req:multipart { memory = "1KiB" }
      for i, file in ipairs(files) do paths[i] = file.path or "none" end
      assert(exists(files[2].path) and exists(files[3].path))
      local reader = files[2]:reader()
      return { reader:all { limit = "1MiB" } == big, files[2]:bytes() == big, files[2].size, files[3]:bytes() == ("y"):rep(900) }
    end), raw({ "name=a; filename=a", ("x"):rep(600) }, { "name=b; filename=b", big }, { "name=c; filename=c", ("y"):rep(900) }))
    answer:expect { true, true, #big, true }
    assert.equal("none", paths[1])
    for i = 2, 3 do
      for _ = 1, 1000 do
        if not exists(paths[i]) then break end
        srv.sleep "5ms"
      end
      assert.is_false(exists(paths[i]))
    end
  end)

  it("tells faults of the disk as ours, a full one by its own status", function()
    local disk, errors = require "srv.core.fs_file", require "srv.base.errors"
    local t = client_of(function(req) return #req:multipart { memory = 1 } end)
    for code, status in pairs { no_space = 507, denied = 500, fs = 500, busy = 503 } do
      srv.test.stub(disk, "write", function() return nil, errors.coded(code, "of the disk") end)
      local r = post(t, raw { "name=a; filename=a", "content" }):expect(status)
      assert.is_nil(r.body:find("of the disk", 1, true))
      assert.matches("of the disk", r.log[1].fields.err.message)
      srv.test.restore()
    end
  end)

  it("keeps such a file until the request ends, also if a child task asked", function()
    post(client_of(function(req)
      local files = srv.all { function() return { select(2, req:multipart { memory = 1 }) } end }[1]
      return { bytes = files[1]:bytes() }
    end), raw { "name=a; filename=a", "content" }):expect { bytes = "content" }
  end)

  it("saves files from memory and from the disk, as new files or over old ones", function()
    local folder = assert(srv.fs.temp()).path .. ".d"
    srv.defer(function() srv.fs.remove(folder, { recursive = true }) end)
    assert(srv.fs.mkdir(folder))
    for _, memory in ipairs { "1MiB", 1 } do
      post(client_of(function(req)
        local _, files = req:multipart { memory = memory }
        for _ = 1, 2 do assert(files[1]:save(folder .. "/saved")) end
        local none, err = files[1]:save(folder .. "/no/such")
        return { none == nil, err.code, srv.fs.stat(folder .. "/saved").mode }
      end), raw { "name=a; filename=a", "content" }):expect { true, "not_found", "0644" }
      assert.equal("content", srv.fs.read(folder .. "/saved"))
      assert(srv.fs.remove(folder .. "/saved"))
    end
  end)

  it("may be asked twice, and in two ways while the body is small", function()
    local body = raw({ "name=t", "v" }, { "name=f; filename=f", ("x"):rep(1000) })
    post(client_of(function(req)
      local fields, files = req:multipart()
      local again, files_again = req:multipart { memory = 1 }
      return { fields == again, files == files_again, req:bytes() == body }
    end), body):expect { true, true, true }
    post(client_of(function(req)
      local bytes = req:bytes()
      return { bytes == body, (req:multipart { memory = 1 }).t }
    end), body):expect { true, "v" }
    local r = post(client_of(function(req)
      req:multipart { memory = 1 }
      return req:bytes()
    end), body):expect(500)
    assert.matches("handed out by req:stream%(%), parts%(%) or multipart%(%)", r.log[1].fields.err.message)
  end)

  it("fails the same way when it is asked twice", function()
    fault(client_of(function(req)
      assert(not pcall(req.multipart, req))
      return #req:multipart()
    end), 400, "bad_multipart", "--B")
  end)

  it("refuses unknown options", function()
    local r = post(client_of(function(req) return #req:multipart { file = 1 } end), raw()):expect(500)
    assert.matches('req:multipart: unknown option "file"', r.log[1].fields.err.message)
  end)
end)

describe("req:parts", function()
  it("loops over the parts as they arrive", function()
    post(client_of(function(req)
      local told = {}
      for part in req:parts() do
        told[#told + 1] = { part.name, part.filename or "-", part.type or "-", part.headers["x-a"] or "-", part:all() }
      end
      return told
    end), raw({ "name=t", "v" }, { "name=f; filename=a/b.txt", ("x"):rep(100), "Content-Type: a/b; c=d\r\nX-A: 1\r\nX-A: 2\r\n" },
      { 'name=g; filename=""', "" })):expect {
      { "t", "-", "-", "-", "v" }, { "f", "b.txt", "a/b", "1, 2", ("x"):rep(100) },
    }
  end)

  it("gives readers: lines, pieces, loops", function()
    post(client_of(function(req)
      local next_part = req:parts()
      local one = next_part()
      local told = { one:line(), one:read(2), one:read(2), one:read() == nil }
      for piece in next_part() do told[#told + 1] = piece end
      told[#told + 1] = next_part() == nil
      return told
    end), raw({ "name=a", "one\r\ntwo" }, { "name=b", "b" })):expect { "one", "tw", "o", true, "b", true }
  end)

  it("passes over what was not read, and a part that has passed is closed", function()
    post(client_of(function(req)
      local first, names = nil, {}
      for part in req:parts() do
        first = first or part
        names[#names + 1] = part.name
      end
      local none, err = first:read()
      return { names, none == nil, err.code }
    end), raw({ "name=a", ("x"):rep(500000) }, { "name=b", "" })):expect { { "a", "b" }, true, "closed" }
  end)

  it("bounds a part that is read", function()
    local t = client_of(function(req)
      for part in req:parts { part_limit = 4 } do
        local bytes, err = "not read", nil
        if part.name == "a" then bytes, err = part:all() end
        if not bytes then error(err, 0) end
      end
      return "fine"
    end)
    post(t, raw({ "name=a", "1234" }, { "name=b", "12345" })):expect "fine"
    fault(t, 413, "content_too_large", raw { "name=a", "12345" })
  end)

  it("is a loop over nothing without a body, and raises what is malformed", function()
    local t = client_of(function(req)
      local n = 0
      for _ in req:parts() do n = n + 1 end
      return { n }
    end)
    t:post("/"):expect { 0 }
    t:post("/", { json = {} }):expect(415)
    fault(t, 400, "bad_multipart", raw({ "name=a", "" }):sub(1, -6))
  end)

  it("cannot be asked after parts, and no other way", function()
    for _, again in ipairs { "parts", "multipart", "bytes", "stream" } do
      local r = post(client_of(function(req)
        req:parts { part_limit = 4 }
        return req[again](req)
      end), raw { "name=a", "" }):expect(500)
      assert.matches("handed out by req:stream", r.log[1].fields.err.message)
    end
  end)
end)

describe("a body schema with a file", function()
  local function route(rule, opts)
    opts = opts or {}
    opts.body = rule
    return client_of(function(req)
      local body = req.valid.body
      return { title = body.title, n = body.n, name = body.photo and body.photo.name, many = body.photos and #body.photos }
    end, opts)
  end

  it("is read from multipart, converted and checked", function()
    local t = route { title = "string 1..10", n = "integer", photo = "file image/png ..8" }
    local photo = { body = "12345678", name = "a.png", type = "image/png" }
    t:post("/", { multipart = { title = "x", n = "5", photo = photo } }):expect { title = "x", n = 5, name = "a.png" }
    t:post("/", { multipart = { title = "x", n = "y", photo = { body = "123456789", name = "a", type = "image/gif" } } })
      :expect(400):expect(function(r)
        local paths = {}
        for _, one in ipairs(r:json().errors) do paths[#paths + 1] = one.path end
        table.sort(paths)
        return table.concat(paths, " "):find "^/n /photo" ~= nil
      end)
    t:post("/", { multipart = { title = "x", n = "5" } }):expect(400):expect { errors = { { path = "/photo" } } }
    t:post("/", { multipart = { title = "x", n = "5", photo = "text" } }):expect(400):expect { errors = { { path = "/photo" } } }
    t:post("/", { json = { title = "x" } }):expect(415)
  end)

  it("takes one or several files as a list, and leaves optional ones out", function()
    local t = route { photos = "file[] 1..2", photo = "file?" }
    local file = { body = "x", name = "a" }
    t:post("/", { multipart = { photos = { file } } }):expect { many = 1 }
    t:post("/", { multipart = { photos = { file, file }, photo = file } }):expect { many = 2, name = "a" }
    t:post("/", { multipart = { photos = { file, file, file } } }):expect(400)
  end)

  it("leaves what it read to req:multipart", function()
    local app = srv.app()
    app:post("/", { body = { photo = "file" } }, function(req)
      return { same = select(2, req:multipart())[1] == req.valid.body.photo }
    end)
    srv.test(app):post("/", { multipart = { photo = { body = "x", name = "a" } } }):expect { same = true }
  end)

  it("may be multipart without files too, if the route says so", function()
    local t = route({ title = "string" }, { consumes = { "json", "multipart" } })
    t:post("/", { multipart = { title = "x" } }):expect { title = "x" }
    t:post("/", { json = { title = "x" } }):expect { title = "x" }
    t:post("/", { form = { title = "x" } }):expect(415)
  end)

  it("is refused at start if JSON should bring the file", function()
    local ok, message = pcall(route, { photo = "file" }, { consumes = { "json" } })
    assert.is_false(ok)
    assert.matches("only multipart brings the file", tostring(message))
  end)
end)
