-- The server's settings. `srv --help` lists them all; flags and SRV_... variables come before what stands here.
return {
  body_limit = "64KiB",
  timeout = "30s",
}
