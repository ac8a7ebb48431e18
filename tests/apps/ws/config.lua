-- Quiet: many of the cases are errors on purpose.
return { watch = false, log_level = "fatal", workers = 1 }
