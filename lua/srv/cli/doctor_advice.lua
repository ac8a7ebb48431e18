--- What to do about each finding, by its id; a rule that knows better says so itself.
return {
  blocked = "While this code runs, every other request of the worker waits. Do less of it for each request (keep what "
    .. "does not change, look things up instead of searching for them), split it with srv.sleep(0), or give it to a "
    .. "process of its own (srv.exec).",
  saturated = "More connections make it slower, not faster. Make the request cheaper where the flame graph is widest; "
    .. "then add workers, up to one a processor.",
  hot_worker = "A connection stays with its worker. Few connections with much work each, a background task, or a timer "
    .. "that one worker alone runs make one hot: spread them over more connections, or move the work to a process of its own.",
  garbage = "Make fewer tables and strings there: use them again (table.clear), build text with table.concat, and keep "
    .. "large data that does not change out of Lua (srv.shared, a database): each cycle walks all of it.",
  interpreted = "Move what cannot be compiled (string.gsub with a function, coroutine.wrap, closures that are made anew) "
    .. "out of the inner loop.",
  slow_clients = "Each holds its task and what it has made. A proxy that buffers answers in front of the app frees it; "
    .. "write_timeout ends those that read nothing.",
  backlog = "Workers come too late to accept: what blocks the loop comes first. If nothing does, clients open more "
    .. "connections than one machine takes: let them keep theirs alive.",
  errors = "The log says of each why, with file and line. Numbers of a load that fails are numbers of the failure.",
  tasks = "Each holds its coroutine and all it refers to. A task that waits needs somebody who ends it: a timeout, a "
    .. "close() of the channel, a cancel() by its parent.",
  connections = "keep_alive_timeout ends connections that wait for a request; one that is being answered stays until its "
    .. "handler returns.",
  descriptors = "Something is opened for each request and not closed: io.open without close(), a socket or a process that "
    .. "no task owns. What srv opens is closed with its task.",
  memory = "Something keeps what requests have made: a table of the module that is never emptied, a cache without a bound, "
    .. "a log in memory. srv.shared has dictionaries with a bound and a time to live.",
}
