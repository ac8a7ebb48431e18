// The typical stack in Fastify: its own plugins with their defaults, JSON Schema for what comes in and for
// what goes out.
const { createRequire } = require("module");
const packages = createRequire(process.env.BENCH_NODE_MODULES + "/package.json");
const pino = packages("pino");
const { stored, withId } = require("./stack_articles");

const app = packages("fastify")({
  logger: { stream: pino.destination({ dest: "/dev/null", sync: false }) },
});

const slug = { type: "string", pattern: "^[a-z0-9-]+$" };
const fields = {
  title: { type: "string", minLength: 1, maxLength: 200 },
  slug: { ...slug, maxLength: 80 },
  url: { type: "string", format: "uri" },
  email: { type: "string", format: "email" },
  pages: { type: "integer", minimum: 1, maximum: 10000 },
  draft: { type: "boolean" },
  state: { type: "string", enum: ["draft", "published", "archived"] },
  tags: { type: "array", items: slug, maxItems: 8 },
  author: {
    type: "object",
    required: ["name", "role"],
    additionalProperties: false,
    properties: {
      name: { type: "string", minLength: 1, maxLength: 80 },
      role: { type: "string", enum: ["author", "editor"] },
    },
  },
  published: { type: "string", format: "date" },
};
const article = { type: "object", required: Object.keys(fields), additionalProperties: false, properties: fields };
// What goes out is written by its types; formats and bounds would only slow that down.
const answered = {
  type: "object",
  properties: {
    id: { type: "integer" }, title: { type: "string" }, slug: { type: "string" }, url: { type: "string" },
    email: { type: "string" }, pages: { type: "integer" }, draft: { type: "boolean" }, state: { type: "string" },
    tags: { type: "array", items: { type: "string" } },
    author: { type: "object", properties: { name: { type: "string" }, role: { type: "string" } } },
    published: { type: "string" },
  },
};

async function start() {
  await app.register(packages("@fastify/helmet"));
  await app.register(packages("@fastify/cors"));
  await app.register(packages("@fastify/compress"));
  await app.register(packages("@fastify/formbody"));

  app.get("/", async () => "hello");
  app.get("/articles/:id", {
    schema: {
      params: { type: "object", properties: { id: { type: "integer", minimum: 1 } } },
      querystring: {
        type: "object",
        properties: {
          page: { type: "integer", minimum: 1, maximum: 1000, default: 1 },
          sort: { type: "string", enum: ["newest", "title"], default: "newest" },
        },
      },
      response: { 200: answered },
    },
  }, async (request) => withId(stored, request.params.id));
  app.post("/articles", { schema: { body: article, response: { 201: answered } } }, async (request, reply) => {
    reply.code(201);
    return withId(request.body, 1234);
  });

  await app.listen({ port: 0, host: "127.0.0.1" });
  console.log(`listening on http://127.0.0.1:${app.server.address().port}`);
}

start();
