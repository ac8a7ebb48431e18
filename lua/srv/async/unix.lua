--- srv.unix: the same over Unix sockets.
require "srv.async.listener"
return require "srv.async.socket".unix
