return { name = ..., from = "folder/init.lua" }
