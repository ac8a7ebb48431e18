--- Digests, secrets, sealed texts, passwords and tokens (API, section 13): srv.crypto.
---
--- Passwords, the signatures of key pairs, and digests and encryption of what is large are computed by
--- the pool's threads, so they wait; all else is done at once.
local beside = require "srv.core.crypto_job"
local core = require "srv.core.crypto"
local errors = require "srv.base.errors"
local jwt = require "srv.base.jwt"
local misuse = require "srv.core.task".misuse
local options = require "srv.base.options"
local password = require "srv.core.password"

local crypto = {}

local HASHES = { md5 = true, sha1 = true, sha256 = true, sha384 = true, sha512 = true }
local ENCODINGS = { hex = true, base64 = true, base64url = true, raw = true }
local TEXTS = { hex = true, base64 = true, base64url = true }

local LARGE = 256 * 1024      -- half a millisecond of a processor
local RANDOM_BYTES_MAX = 64 * 1024
local SECRET_BYTES_MIN = 32   -- base/crypto_seal.h

local function check_string(where, what, v)
  if type(v) ~= "string" then misuse(("%s: %s must be a string, not a %s"):format(where, what, type(v))) end
end

local function check_word(where, what, v, known)
  if not known[v] then misuse(where .. ": " .. options.unknown(what, v, known)) end
end

local function check_encoding(where, enc)
  if enc ~= nil then check_word(where, "encoding", enc, ENCODINGS) end
end

--- Who computes: where nothing can wait, as in a comparator of table.sort, it is done at once after all.
local function by(s)
  if #s > LARGE and beside.can_wait() then return beside end
  return core
end

-- Digests ---------------------------------------------------------------------------------------------

---@alias srv.crypto.Hash "md5"|"sha1"|"sha256"|"sha384"|"sha512"
---@alias srv.crypto.Encoding "hex"|"base64"|"base64url"|"raw"

---@param alg srv.crypto.Hash
---@param s string
---@param enc srv.crypto.Encoding?  "hex"
---@return string
---@return srv.Error? err  of more than 256 KiB: busy, unavailable
function crypto.hash(alg, s, enc)
  check_word("srv.crypto.hash", "algorithm", alg, HASHES)
  check_string("srv.crypto.hash", "what is hashed", s)
  check_encoding("srv.crypto.hash", enc)
  return by(s).hash(alg, s, enc)
end

---@param alg srv.crypto.Hash
---@param key string
---@param s string
---@param enc srv.crypto.Encoding?  "hex"
---@return string
---@return srv.Error? err  of more than 256 KiB: busy, unavailable
function crypto.hmac(alg, key, s, enc)
  check_word("srv.crypto.hmac", "algorithm", alg, HASHES)
  check_string("srv.crypto.hmac", "the key", key)
  check_string("srv.crypto.hmac", "what is signed", s)
  check_encoding("srv.crypto.hmac", enc)
  return by(s).hmac(alg, key, s, enc)
end

--- Whether two strings are the same, in a time that does not tell where they differ.
---@param a string
---@param b string
---@return boolean
function crypto.equal(a, b)
  check_string("srv.crypto.equal", "the first", a)
  check_string("srv.crypto.equal", "the second", b)
  return core.equal(a, b)
end

-- What nobody can guess -------------------------------------------------------------------------------

local function check_count(where, n)
  if type(n) ~= "number" or n % 1 ~= 0 or n < 1 or n > RANDOM_BYTES_MAX then
    misuse(("%s: a number of bytes from 1 to %d was expected, not %s"):format(where, RANDOM_BYTES_MAX, tostring(n)))
  end
end

--- N random bytes.
---@param n integer
---@return string
function crypto.random(n)
  check_count("srv.crypto.random", n)
  return core.random(n)
end

--- A random text for links, sessions and keys of an API.
---@param bytes integer?  16, of randomness; the text is a third longer
---@return string
function crypto.token(bytes)
  bytes = bytes == nil and 16 or bytes
  check_count("srv.crypto.token", bytes)
  return core.random(bytes, "base64url")
end

--- A UUID of version 7: later ones sort behind earlier ones.
---@return string
function crypto.uuid() return core.uuid() end

-- Encodings -------------------------------------------------------------------------------------------

---@param enc "hex"|"base64"|"base64url"
---@param s string
---@return string
function crypto.encode(enc, s)
  check_word("srv.crypto.encode", "encoding", enc, TEXTS)
  check_string("srv.crypto.encode", "what is encoded", s)
  return core.encode(enc, s)
end

---@param enc "hex"|"base64"|"base64url"
---@param s string
---@return string?
---@return srv.Error? err  bad_encoding
function crypto.decode(enc, s)
  check_word("srv.crypto.decode", "encoding", enc, TEXTS)
  check_string("srv.crypto.decode", "what is decoded", s)
  local bytes = core.decode(enc, s)
  if bytes then return bytes end
  return nil, errors.coded("bad_encoding", "this is not " .. enc)
end

-- Sealed texts ----------------------------------------------------------------------------------------

local function check_seal(where, key, s, aad)
  check_string(where, "the key", key)
  check_string(where, "the text", s)
  if aad ~= nil then check_string(where, "the additional data", aad) end
  if #key < SECRET_BYTES_MIN then
    misuse(("%s: the key has %d bytes and needs %d: make one with srv.crypto.token(32)"):format(
      where, #key, SECRET_BYTES_MIN))
  end
end

--- Encrypts S so that only who has the key can read it, and nobody else can make or change it.
---@param key string   any secret of 32 bytes or more
---@param s string
---@param aad string?  what decrypt() must be given, too, and is not kept: whom or what this is for
---@return string      base64url
---@return srv.Error? err  of more than 256 KiB: busy, unavailable
function crypto.encrypt(key, s, aad)
  check_seal("srv.crypto.encrypt", key, s, aad)
  return by(s).seal(key, s, aad)
end

---@param key string
---@param s string     from encrypt()
---@param aad string?
---@return string?
---@return srv.Error? err  forged
function crypto.decrypt(key, s, aad)
  check_seal("srv.crypto.decrypt", key, s, aad)
  local text, err = by(s).unseal(key, s, aad)
  if text or err then return text, err end
  return nil, errors.new(400, "this was not encrypted with this key, or was changed since", { code = "forged" })
end

-- Passwords -------------------------------------------------------------------------------------------

--- An argon2id hash to be kept, with its salt in it. Waits for a thread of the pool: some 30 ms.
---@param s string
---@return string?
---@return srv.Error? err  invalid: over 4096 bytes; busy, unavailable
function crypto.password_hash(s)
  check_string("srv.crypto.password_hash", "the password", s)
  return password.hash(s)
end

--- Whether S is the password that HASH was made of.
---@param s string
---@param hash string
---@return boolean?
---@return srv.Error? err  bad_hash, invalid, busy, unavailable
function crypto.password_verify(s, hash)
  check_string("srv.crypto.password_verify", "the password", s)
  check_string("srv.crypto.password_verify", "the hash", hash)
  return password.verify(s, hash)
end

-- Tokens ------------------------------------------------------------------------------------------------

crypto.jwt_sign = jwt.sign
crypto.jwt_verify = jwt.verify

return crypto
