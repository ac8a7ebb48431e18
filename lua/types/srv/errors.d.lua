---@meta _
-- luacheck: ignore 212 241 631

---@class srv.Error
---@field status integer      400-599
---@field code string         stable word to compare: "not_found"
---@field message string
---@field title string        reason phrase of the status
---@field expose boolean      may the client read `message`?
---@field cause any           the error beneath
---@field headers table<string, any>?
---@field data table?         more members for the client
---@field errors srv.Fault[]? list of faults
---@field trace string?
---@field request_id string?

---@class srv.Fault
---@field path string     JSON Pointer from the value that was checked: "/tags/1"
---@field code "required"|"type"|"too_small"|"too_big"|"too_short"|"too_long"|"pattern"|"one_of"|"format"|"unknown"|"duplicate"|"rejected"
---@field message string  "must have at most 80 characters"
---@field in? string      the part of the request: "body", "query"

---@class srv.ErrorFields
---@field code string?
---@field title string?
---@field cause any
---@field expose boolean?
---@field headers table<string, any>?
---@field data table?
---@field errors table[]?

--- Raises one: `srv.error(404, "no such article")`.
---@class srv.ErrorModule
---@overload fun(status: integer, message?: string, fields?: srv.ErrorFields)
local errors = {}

--- One to return.
---@param status integer
---@param message string?
---@param fields srv.ErrorFields?
---@return srv.Error
function errors.new(status, message, fields) end

--- Whether E is an error object (with this code).
---@param e any
---@param code string?
---@return boolean
function errors.is(e, code) end
