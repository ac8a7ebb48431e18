-- The limits that the cases of tests/http1/cases.json count on.
return {
  body_limit = "8MiB",
  head_timeout = "3s",
  body_timeout = "5s",
  keep_alive_timeout = "4s",
  watch = false,
  log_level = "warn",
}
