local function load_settings()
  error "no settings"
end
load_settings()
return {}
