---@meta _
-- luacheck: ignore 212 241 631

--- "string 1..80", { field = rule }, { rule }, function(v) -> v | nil, message; or a schema.
---@alias srv.Rule string|table|srv.Schema|fun(v: any): any, string?

---@class srv.SchemaOptions
---@field optional boolean?
---@field default any
---@field min integer?      fields of an object, items of an array
---@field max integer?
---@field unique boolean?
---@field check (fun(v: any): any, string?, string?)?  runs last, may wait: v, or nil, message, path
---@field coerce boolean?   JSON's texts become what the rule wants
---@field partial boolean?  all fields optional, no defaults: PATCH
---@field order string[]?   of fields, in answers and docs
---@field name string?      of the OpenAPI component
---@field description string?

---@class srv.SchemaModule
---@overload fun(rule: srv.Rule, opts?: srv.SchemaOptions): srv.Schema
local schema = {}

--- The first that fits counts.
---@param ... srv.Rule
---@return srv.Schema
function schema.any_of(...) end

--- For rules that name themselves.
---@param fn fun(): srv.Rule
---@return srv.Schema
function schema.lazy(fn) end

---@class srv.Schema
local Schema = {}

---@param v any
---@param opts { source?: "json"|"text" }?  "json"
---@return any value
---@return srv.Error? err  400 `invalid`, all faults in `errors`
function Schema:check(v, opts) end

---@param text string  JSON
---@return any value
---@return srv.Error? err
function Schema:decode(text) end

--- As a schema of OpenAPI 3.1.
---@param components table<string, table>?  named schemas go there, and are referred to
---@return table
function Schema:openapi(components) end
