--- srv.tcp: connect and listen.
require "srv.async.listener"
return require "srv.async.socket".tcp
