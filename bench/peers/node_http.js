// What the bench app answers, on node's own http server and nothing else.
const http = require("http");

const server = http.createServer((request, response) => {
  if (request.url === "/") {
    response.setHeader("Content-Type", "text/plain; charset=utf-8");
    response.setHeader("Content-Length", 5);
    response.end("hello");
  } else if (request.url.startsWith("/users/")) {
    const body = JSON.stringify({ id: decodeURIComponent(request.url.slice(7)) });
    response.setHeader("Content-Type", "application/json");
    response.setHeader("Content-Length", Buffer.byteLength(body));
    response.end(body);
  } else {
    response.statusCode = 404;
    response.end();
  }
});

server.keepAliveTimeout = 75000;
server.listen(0, "127.0.0.1", () => console.log(`listening on http://127.0.0.1:${server.address().port}`));
