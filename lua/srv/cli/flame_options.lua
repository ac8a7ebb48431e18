--- The options of `srv flame`.
local options = require "srv.cli.options"

return options.new("flame", "APP [options] [-- FLAGS OF srv run...]",
  "where an app's time goes: a flame graph of all its workers, Lua and C, in one page", {
    { false, "load", "[ LINE ]", "loads the app as `srv bench LINE` would: '[ -c 50 -d 10 /path ]'",
      heading = "What is looked at:" },
    { "P", "on-port", "COMMAND", "your own load, by a shell; $PORT is the app's. The recording ends with it" },
    { false, "attach", "PID", "a server that runs already, instead of APP", kind = "count" },
    { "d", "duration", "TIME", "records so long; without it, until the load ends, else until Ctrl-C", kind = "duration" },
    { false, "hz", "N", "looks at each worker for each second of its CPU time, up to 1000", kind = "count", default = 1000 },
    { false, "start-timeout", "TIME", "for APP to listen", kind = "duration", default = 30 },

    { false, "dest", "FILE", "the page (default APP-flame.html)", heading = "What comes of it:" },
    { "o", "open", false, "shows the page" },
    { false, "title", "TEXT", "stands over the page" },
    { false, "diff", "OLD.json", "the page shows what has changed since that --json" },
    { "j", "json", "FILE", "the profile as JSON, for --diff; `-` is the terminal, as in those below" },
    { false, "folded", "FILE", "folded stacks: root;child;leaf COUNT" },
    { false, "speedscope", "FILE", "for speedscope.app" },
    { "q", "quiet", false, "no live view, no summary" },
  }, [[
Examples:
  srv flame apps/hello --load '[ -c 50 -d 10 / ]'           starts it, loads it, stops it
  srv flame apps/hello --on-port 'curl localhost:$PORT/'    with a load of your own
  srv flame --attach 4711 -d 30                             a server in production, for half a minute
  srv flame apps/hello --load '[ / ]' --json before.json    ... and after your change:
  srv flame apps/hello --load '[ / ]' --diff before.json

Exit status: 0 done; 1 no server, nothing sampled, or a file could not be written; 2 the line was wrong.
]])
