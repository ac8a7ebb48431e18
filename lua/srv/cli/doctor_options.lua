--- The options of `srv doctor`.
local options = require "srv.cli.options"

return options.new("doctor", "APP [options] [-- FLAGS OF srv run...]",
  "what slows an app down, by file and line, and what to do about it", {
    { false, "load", "[ LINE ]", "loads the app as `srv bench LINE` would: '[ -c 50 -d 10 /path ]'. Default: 100 connections "
      .. "to all GET routes without parameters", heading = "What is looked at:" },
    { "P", "on-port", "COMMAND", "your own load, by a shell; $PORT is the app's. The recording ends with it" },
    { false, "attach", "PID", "a server that runs already, instead of APP, with the load that it has", kind = "count" },
    { "d", "duration", "TIME", "of the load, or of the look at a server that runs", kind = "duration", default = 10 },
    { false, "sample-interval", "MS", "from point to point of the charts; the workers are looked at each 10 ms", kind = "count",
      default = 100 },
    { false, "start-timeout", "TIME", "for APP to listen", kind = "duration", default = 30 },

    { false, "check", false, "exit status 1 if there are findings", heading = "What comes of it:" },
    { "j", "json", false, "the result as JSON, instead of the text" },
    { false, "dest", "FILE", "the page (default APP-doctor.html)" },
    { false, "page", false, "writes the page; --no-page does not", default = true },
    { "o", "open", false, "shows the page" },
    { false, "title", "TEXT", "stands over the page" },
    { "q", "quiet", false, "no live view" },
  }, [[
Examples:
  srv doctor apps/slow-rest --load '[ -c 100 -d 10 /a ]'    starts it, loads it, stops it, says what is wrong
  srv doctor apps/news                                      all its GET routes without parameters
  srv doctor apps/news --on-port 'k6 run -e PORT=$PORT load.js'
  srv doctor --attach 4711 -d 30                            a server in production, for half a minute
  srv doctor --check --no-page apps/news                    in CI

Exit status: 0 done; 1 no server, no load, or --check and there are findings; 2 the line was wrong.
]])
