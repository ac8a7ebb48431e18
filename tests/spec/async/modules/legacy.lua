#!/usr/bin/env lua
module("async.modules.legacy", package.seeall)
function answer() return 42 end
