console.log("compressed beside it, if the client takes it");
