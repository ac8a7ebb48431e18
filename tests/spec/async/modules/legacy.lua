#!/usr/bin/env lua
-- luacheck: globals answer module
module("async.modules.legacy", package.seeall)
function answer() return 42 end
