-- luacheck: globals a_global_of_a_module
a_global_of_a_module = 1
