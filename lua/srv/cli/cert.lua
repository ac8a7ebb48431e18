--- `srv cert --dev`: an authority of one's own and a certificate by it, so that https://localhost is what the real thing
--- will be. The authority stays, and with it the trust in it; the certificate is made anew as often as one likes.
local certificate = require "srv.core.certificate"
local crypto = require "srv.base.crypto"
local fs = require "srv.async.fs"
local options = require "srv.cli.options"
local terminal = require "srv.cli.terminal"
local time = require "srv.base.time"

local FOLDER = ".srv/tls"
local NAMES = { "localhost", "127.0.0.1", "::1" }
local AUTHORITY_DAYS = 3650
local CERTIFICATE_DAYS = 800 -- browsers that look take none of more than 825, of a private authority too
local DAY = 24 * 60 * 60

local LINE = options.new("cert", "--dev", "a certificate for development, and the authority to trust for it", {
  { false, "dev", false, "says that it is for development: nobody else will trust it" },
  { false, "host", "NAME", "a name or an address besides localhost, 127.0.0.1 and ::1; again for more", many = true },
  { "o", "out", "FOLDER", "where the files go", default = FOLDER },
  { false, "force", false, "make the certificate anew; an authority that is there stays" },
}, [[
  srv cert --dev && srv . --cert .srv/tls/cert.pem --key .srv/tls/key.pem
  srv cert --dev --host shop.test --host '*.shop.test' --host 192.168.1.7

Public names get theirs from an authority that browsers know: docs/guide/tls.md.
]])

local function fail(text)
  io.stderr:write("srv cert: ", text, "\n")
  return 1
end

local function paths_in(folder)
  return {
    ca = folder .. "/ca.pem",
    ca_key = folder .. "/ca-key.pem",
    cert = folder .. "/cert.pem",
    key = folder .. "/key.pem",
    ignore = folder .. "/.gitignore",
  }
end

--- Those on the way to it are made as any others.
local function make_folder(path)
  local above = path:match "^(.+)/"
  if above then
    local ok, err = fs.mkdir(above)
    if not ok then return nil, err end
  end
  return certificate.folder(path)
end

--- As a shell reads it back.
local function quoted(path)
  if not path:find "[^%w%%+,./:=@_-]" then return path end
  return "'" .. path:gsub("'", "'\\''") .. "'"
end

local function names_with(hosts)
  local names, known = {}, {}
  for _, list in ipairs { NAMES, hosts or {} } do
    for _, name in ipairs(list) do
      if not certificate.is_name(name) then
        if name:find "^%*%.[%w-]+$" then
          return nil, ("%q is too wide, and clients do not take it: two labels stand behind the star"):format(name)
        end
        return nil, ("%q is no host name and no address: names stand without https:// and port"):format(name)
      end
      if not known[name] then names[#names + 1], known[name] = name, true end
    end
  end
  return names
end

--- Its files, which are both there or both made. The last word of its name tells it from others in a browser's list.
local function authority(paths)
  local has_ca, has_key = fs.stat(paths.ca), fs.stat(paths.ca_key)
  if has_ca and has_key then return fs.read(paths.ca), fs.read(paths.ca_key), false end
  if has_ca or has_key then
    return nil, ("%s is there without %s: remove it, and a new authority is made"):format(
      has_ca and paths.ca or paths.ca_key, has_ca and paths.ca_key or paths.ca)
  end
  local name = "srv development " .. crypto.random(3):gsub(".", function(c) return ("%02x"):format(c:byte()) end)
  local ca, key = certificate.authority(name, AUTHORITY_DAYS)
  if not ca then return nil, key.message end
  local ok, err = certificate.save(paths.ca_key, key, true)
  if ok then ok, err = certificate.save(paths.ca, ca, false) end
  if not ok then return nil, err.message end
  return ca, key, true
end

local function make(paths, names)
  local ca, ca_key, is_new = authority(paths)
  if not (ca and ca_key) then return nil, ca_key or is_new end
  local cert, key = certificate.server(names[1], CERTIFICATE_DAYS, names, ca, ca_key)
  if not cert then
    if is_new then return nil, key.message end
    return nil, ("%s: remove %s and %s, and a new one is made"):format(key.message, paths.ca, paths.ca_key)
  end
  local ok, err = certificate.save(paths.key, key, true)
  if ok then ok, err = certificate.save(paths.cert, cert, false) end
  if ok then ok, err = certificate.save(paths.ignore, "*\n", false) end
  if not ok then return nil, err.message end
  return true, is_new
end

local TRUST = [[

Serve with it:
  srv APP --cert %CERT% --key %KEY%

Trust the authority, on this machine alone; its key stays with you:
  curl       curl --cacert %CA% https://localhost:8080/
  Debian     sudo cp %CA% /usr/local/share/ca-certificates/srv-dev.crt && sudo update-ca-certificates
  Chromium   mkdir -p $HOME/.pki/nssdb && certutil -d sql:$HOME/.pki/nssdb -A -t C,, -n srv-dev -i %CA%   (libnss3-tools)
  Firefox    Settings, Certificates, Authorities, Import: %CA%
]]

local function tell(paths, names, is_new)
  local out = terminal.out
  local function line(path, text) io.stdout:write(out:paint("bold", path), "\n  ", text, "\n") end
  local function day(days) return time.date(os.time() + days * DAY, "%Y-%m-%d") end
  line(paths.ca, is_new and "the authority, until " .. day(AUTHORITY_DAYS) or "the authority, as it was")
  line(paths.cert, "for " .. table.concat(names, ", ") .. ", until " .. day(CERTIFICATE_DAYS))
  line(paths.key, "its private key")
  io.stdout:write((TRUST:gsub("%%(%u+)%%", {
    CERT = quoted(paths.cert), KEY = quoted(paths.key), CA = quoted(paths.ca),
  })))
end

---@param args string[]
---@return integer exit_status
return function(args)
  local opts, rest = LINE:read(args)
  if not opts then return rest end
  if #rest > 0 then return LINE:refuse(("what is %q for? A name is given as --host %s"):format(rest[1], rest[1])) end
  if not opts.dev then
    return LINE:refuse("certificates that others trust come from an authority that they know (docs/guide/tls.md); "
      .. "--dev makes one for this machine")
  end
  local names, wrong = names_with(opts.host)
  if not names then return LINE:refuse(wrong) end
  local folder = opts.out:gsub("(.)/+$", "%1")
  local paths = paths_in(folder)
  if fs.stat(paths.cert) and not opts.force then
    return fail(paths.cert .. " is there: --force makes it anew, and the authority that is trusted stays")
  end
  local made, err = make_folder(folder)
  if not made then return fail(err.message) end
  local ok, is_new = make(paths, names)
  if not ok then return fail(tostring(is_new)) end
  tell(paths, names, is_new)
  return 0
end
