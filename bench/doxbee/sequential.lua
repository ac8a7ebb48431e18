--- One upload, step after step: seven operations, each begun when the one before is over.
local fakes = require "fakes"

local account, maybe_fail = fakes.account, fakes.maybe_fail
local File, FileVersion, Version = fakes.File, fakes.FileVersion, fakes.Version

local function store(tx, id_or_path, blob_id, file)
  local version = {
    user_account_id = account.id, date = os.time(), blob_id = blob_id, creator_id = account.id,
    previous_id = file and file.version,
  }
  version.id = Version.create_hash(version)
  Version.insert(version):exec_within(tx)
  maybe_fail()
  if not file then
    file = { id = fakes.uuid(), user_account_id = account.id, name = id_or_path:match "[^/]*$", version = version.id }
    local query = File.create_query(id_or_path, file)
    maybe_fail()
    query:exec_within(tx)
    maybe_fail()
  end
  FileVersion.insert({ file_id = file.id, version_id = version.id }):exec_within(tx)
  maybe_fail()
  File.where_update({ id = file.id }, { version = version.id }):exec_within(tx)
  maybe_fail()
end

--- The commit is waited for, as callbacks do; promises do not.
return function(_, stream, id_or_path)
  local blob, tx = fakes.blobs.create(account), fakes.db.begin()
  local blob_id = blob:put(stream)
  local file = File.by_uuid_or_path(id_or_path):get()
  local ok, err = pcall(store, tx, id_or_path, blob_id, file)
  if not ok then
    tx:rollback()
    error(err, 0)
  end
  tx:commit()
end
