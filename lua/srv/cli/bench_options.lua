--- The options of `srv bench`: autocannon's, letters included, and what it has not.
local options = require "srv.cli.options"

return options.new("bench", "URL... [options] [-- COMMAND...]",
  "loads a server and says how it did", {
    { "c", "connections", "N", "open at once", kind = "count", default = 10, heading = "Load:" },
    { "p", "pipelining", "N", "requests under way on each of them (HTTP/1.1, WebSocket)", kind = "count", default = 1 },
    { false, "http2", false, "HTTP/2: agreed on with https://, taken for granted with http://" },
    { false, "streams", "N", "requests under way on each connection of HTTP/2 (default 1)", kind = "count" },
    { "d", "duration", "TIME", "for so long", kind = "duration", default = 10 },
    { "a", "amount", "N", "so many requests, however long that takes", kind = "count" },
    { "R", "overall-rate", "N", "requests a second in all, evenly spaced", kind = "number" },
    { "r", "connection-rate", "N", "the same, for each connection", kind = "number" },
    { "w", "workers", "N", "threads that make the load", kind = "count", default = 1 },
    { "W", "warmup", "[ -c N -d TIME ]", "a run before, of which nothing is counted (1 connection, 3 seconds)" },
    { "t", "timeout", "TIME", "from a request to the end of its response", kind = "duration", default = 10 },
    { "M", "max-connection-requests", "N", "a connection is used no more after so many", kind = "count" },
    { "O", "max-overall-requests", "N", "the run ends after so many", kind = "count" },
    { "D", "reconnect-rate", "N", "a connection is made anew after so many", kind = "count" },
    { "B", "bailout", "N", "the run ends after so many errors", kind = "count" },
    { "f", "forever", false, "again and again, until a signal ends it" },

    { "m", "method", "NAME", "GET, or POST with a form", heading = "Requests:" },
    { "H", "headers", "NAME=VALUE", "a field; may be given again (NAME: VALUE too)", many = true },
    { "b", "body", "TEXT", "of each request; with ws:// the message" },
    { "i", "input", "FILE", "the body from a file" },
    { "F", "form", "JSON", 'a multipart form, as JSON or a file of it: {"name":{"type":"file","path":"a.png"}}' },
    { false, "har", "FILE", "the requests of a HAR file to these origins" },
    { "I", "id-replacement", false, "[<id>] in URL, body or field becomes an id of each request" },
    { "E", "expect-body", "TEXT", "the body that each response must have" },
    { "S", "socket-path", "PATH", "a Unix socket; the URL still says host and path" },
    { false, "weights", "N,N...", "of the URLs, in their order" },

    { "s", "servername", "NAME", "whose certificate is wanted (the host of the URL)", heading = "TLS (https, wss):" },
    { false, "ca", "FILE", "who may have signed it, in PEM (the system's authorities)" },
    { false, "insecure", false, "any certificate will do" },
    { false, "cert", "FILE", "our own certificate, in PEM" },
    { false, "key", "FILE", "its key, if that stands in a file of its own" },
    { false, "full-handshakes", false, "no session is taken up again when a connection is made anew" },

    { "j", "json", false, "the result as JSON", heading = "Results:" },
    { false, "html", "FILE", "a page of the result, in one file" },
    { false, "output", "FILE", "the JSON into a file, besides what is shown" },
    { false, "hgrm", "FILE", "the distribution, as HdrHistogram's tools read it" },
    { false, "compare", "FILE", "an earlier --json or --output: is the difference real?" },
    { false, "fail-if", "CONDITION", "exit status 1 if p99>20ms, errors>0.1%, rps<1000; again for more", many = true },
    { "l", "latency", false, "all percentiles" },
    { false, "render-status-codes", false, "a table of status codes" },
    { "x", "exclude-error-stats", false, "times of 2xx responses alone" },
    { "C", "ignore-coordinated-omission", false, "with a rate: times from sending, not from when it was due" },
    { "L", "sample-interval", "MS", "from sample to sample of requests and bytes", kind = "count", default = 1000 },
    { "T", "title", "TEXT", "stands over the result" },
    { "n", "no-progress", false, "no live view" },

    { false, "on-port", false, "starts COMMAND, loads the port that it opens, ends it; URLs may be paths", heading = "Server:" },
    { false, "start-timeout", "TIME", "for COMMAND to listen", kind = "duration", default = 30 },
  }, [[
Examples:
  srv bench http://127.0.0.1:8080/                      10 connections, 10 seconds
  srv bench -c 100 -d 30 -R 5000 URL                    5,000 requests a second, evenly spaced
  srv bench --fail-if 'p99>20ms' --fail-if 'errors>0' URL
  srv bench --http2 --streams 100 https://localhost:8443/
  srv bench -c 100 -b '{"say":"hi"}' ws://127.0.0.1:8080/echo   messages that come back
  srv bench --on-port /news -- srv apps/news            starts it, loads it, stops it

Exit status: 0 done; 1 nothing was answered, or a --fail-if holds; 2 the line was wrong.
]])
