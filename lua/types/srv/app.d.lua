---@meta _
-- luacheck: ignore 212 241 631

---@alias srv.Duration number|string  seconds, or "250ms" "5s" "10m" "2h" "7d"
---@alias srv.Size integer|string     bytes, or "64KiB" "1MiB" "2GiB"

--- `next()` runs the rest and returns res; in the last function of a route, the next matching route.
---@alias srv.Next fun(what?: "route"|srv.Request, res?: srv.Response): srv.Response

--- Returns `body, [status], [headers]`, `nil, err`, or nothing when res holds the answer.
---@alias srv.Handler fun(req: srv.Request, res: srv.Response, next: srv.Next): any, any, any

---@class srv.Plugin
---@field name string?
---@field use srv.Handler?                        a step of the chain
---@field hooks table<srv.HookName, function>?
---@field setup fun(router: srv.Router)?          at start

---@alias srv.HookName "start"|"stop"|"request"|"validated"|"send"|"sent"|"error"|"abort"|"timeout"

---@class srv.RouterOptions
---@field timeout srv.Duration?      "30s" to the head of the answer, then 503
---@field body_limit srv.Size?       "1MiB", else 413
---@field slash "ignore"|"strict"|"redirect"|nil  a slash too many or too few at the end
---@field host string?               a router's: "api.example.com", ":tenant.example.com"
---@field merge_params boolean?      a router's: true; does it see the parameters of its prefix

---@class srv.RouteOptions
---@field params srv.Rule?
---@field query srv.Rule?
---@field headers srv.Rule?
---@field cookies srv.Rule?
---@field body srv.Rule?
---@field response srv.Rule|table<integer, srv.Rule>|nil
---@field consumes ("json"|"form"|"multipart")[]?
---@field timeout srv.Duration?
---@field body_limit srv.Size?
---@field abort "cancel"|"finish"|nil  when the client leaves
---@field fallback boolean?          runs when the other route of this pattern passes
---@field name string?               for app:url
---@field summary string?            this and what follows is for OpenAPI
---@field description string?
---@field tags string[]?
---@field deprecated boolean?
---@field hidden boolean?

---@class srv.TimerOptions
---@field each_worker boolean?   false: in one worker of the whole app
---@field overlap boolean?       false: a run that is late skips one
---@field jitter srv.Duration?   0
---@field at_start boolean?      false
---@field timeout srv.Duration?  none
---@field zone string?           "UTC", of cron

---@class srv.StaticOptions
---@field index string|false|nil          "index.html"
---@field max_age srv.Duration?           0
---@field immutable boolean|string|nil    false; true, or a pattern for the names that are
---@field fallback string?                for what is missing
---@field dotfiles boolean?               false
---@field precompressed boolean?          true: name.br, name.zst, name.gz beside the file
---@field etag boolean?                   true
---@field download boolean|string|nil     false; true, or a pattern for the names that are
---@field headers table<string, string>?
---@field list boolean?                   false: pages that list a folder

--- An app or a router: the same object.
---@class srv.Router
local Router = {}

---@param paths string|string[]  "/news/:id"
---@param ... srv.RouteOptions|srv.Plugin|srv.Handler  [options], [middleware...], handler
---@return srv.Router
function Router:get(paths, ...) end

--- WebSockets: a function for the whole life of each, or one for each event.
---@param paths string|string[]
---@param ... srv.SocketOptions|srv.Plugin|srv.Handler|srv.SocketHandler|srv.SocketEvents  [options], [middleware...], handler
---@return srv.Router
function Router:ws(paths, ...) end

---@param paths string|string[]
---@param ... srv.RouteOptions|srv.Plugin|srv.Handler
---@return srv.Router
function Router:post(paths, ...) end

---@param paths string|string[]
---@param ... srv.RouteOptions|srv.Plugin|srv.Handler
---@return srv.Router
function Router:put(paths, ...) end

---@param paths string|string[]
---@param ... srv.RouteOptions|srv.Plugin|srv.Handler
---@return srv.Router
function Router:patch(paths, ...) end

---@param paths string|string[]
---@param ... srv.RouteOptions|srv.Plugin|srv.Handler
---@return srv.Router
function Router:delete(paths, ...) end

---@param paths string|string[]
---@param ... srv.RouteOptions|srv.Plugin|srv.Handler
---@return srv.Router
function Router:head(paths, ...) end

---@param paths string|string[]
---@param ... srv.RouteOptions|srv.Plugin|srv.Handler
---@return srv.Router
function Router:options(paths, ...) end

--- Every method.
---@param paths string|string[]
---@param ... srv.RouteOptions|srv.Plugin|srv.Handler
---@return srv.Router
function Router:all(paths, ...) end

---@param methods string|string[]  "PURGE"; "*" for all
---@param paths string|string[]
---@param ... srv.RouteOptions|srv.Plugin|srv.Handler
---@return srv.Router
function Router:route(methods, paths, ...) end

--- Middleware for all beneath PREFIX, wherever it stands in the file; also for 404, 405 and OPTIONS.
---@param prefix string|srv.Handler|srv.Plugin
---@param ... srv.Handler|srv.Plugin
---@return srv.Router
function Router:use(prefix, ...) end

---@param prefix string  may hold parameters
---@param inner srv.Router
---@return srv.Router
function Router:mount(prefix, inner) end

--- Files of a folder, behind all routes.
---@param prefix string
---@param folder string  in the app's folder
---@param opts srv.StaticOptions?
---@return srv.Router
function Router:static(prefix, folder, opts) end

--- Makes answers of errors beneath this mount; nothing returned: the outer one is asked.
---@param format fun(err: srv.Error, req: srv.Request, res: srv.Response): any, integer?, table?
---@return srv.Router
function Router:error(format) end

---@param show fun(req: srv.Request, res: srv.Response): any, integer?, table?
---@return srv.Router
function Router:not_found(show) end

--- A function for a point of the life of requests, or of the app.
---@param name srv.HookName
---@param fn function  (req, res); error: (err, req, res); abort and timeout: (req); start and stop: ()
---@param opts { once?: boolean }?  of start and stop: in one worker
---@return srv.Router
---@overload fun(self: srv.Router, name: "request"|"validated"|"send"|"sent", fn: fun(req: srv.Request, res: srv.Response): any): srv.Router
---@overload fun(self: srv.Router, name: "error", fn: fun(err: srv.Error, req: srv.Request, res: srv.Response)): srv.Router
---@overload fun(self: srv.Router, name: "abort"|"timeout", fn: fun(req: srv.Request)): srv.Router
function Router:hook(name, fn, opts) end

--- FN again and again: "5m", a number of seconds, or "cron: 0 4 * * *".
---@param when srv.Duration
---@param opts srv.TimerOptions|function
---@param fn function?
---@return srv.Timer
function Router:every(when, opts, fn) end

--- A task of this worker that outlives the request; while the app loads, one in each worker from when it serves.
---@param fn function
---@param ... any  its arguments
---@return srv.Task
function Router:spawn(fn, ...) end

--- A route's URL by its name: `app:url("news.show", { id = 7 }, { page = 2 })`.
---@param name string
---@param params table<string, string|number>?
---@param query table<string, any>?
---@return string
function Router:url(name, params, query) end

---@return { method: string, path: string, name: string?, file: string, line: integer, middleware: string[] }[]
function Router:routes() end

--- Drains and ends the process, as SIGTERM does.
---@param why string?
function Router:stop(why) end

---@class srv.Timer
local Timer = {}

--- The run in hand is cancelled too. Idempotent.
function Timer:cancel() end
