// One row by its key as JSON: Fastify and node-postgres with a prepared statement, logger off.
const { createRequire } = require("module");
const packages = createRequire(process.env.BENCH_NODE_MODULES + "/package.json");
const fastify = packages("fastify")();
const { Pool } = packages("pg");

const pool = new Pool({ connectionString: process.env.BENCH_POSTGRES_URL, max: 20 });
const text = "select id, title, body from items where id = $1";

fastify.get("/rows/:id", async (request, reply) => {
  const result = await pool.query({ name: "row", text, values: [request.params.id] });
  return result.rows[0] || reply.code(404).send({ error: "not found" });
});

fastify.listen({ port: 0, host: "127.0.0.1" }).then(() =>
  console.log(`listening on http://127.0.0.1:${fastify.server.address().port}`));
