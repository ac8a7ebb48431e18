// The typical stack in Express: what their pages recommend, each with its defaults; Joi for the rules.
const { createRequire } = require("module");
const packages = createRequire(process.env.BENCH_NODE_MODULES + "/package.json");
const express = packages("express");
const Joi = packages("joi");
const pino = packages("pino");
const { stored, withId } = require("./stack_articles");

const app = express();
app.disable("x-powered-by");
app.use(packages("pino-http")({}, pino.destination({ dest: "/dev/null", sync: false })));
app.use(packages("helmet")());
app.use(packages("cors")());
app.use(packages("compression")());
app.use(express.json());
app.use(express.urlencoded({ extended: true }));

const slug = Joi.string().pattern(/^[a-z0-9-]+$/);
const article = Joi.object({
  title: Joi.string().min(1).max(200).required(),
  slug: slug.max(80).required(),
  url: Joi.string().uri({ scheme: ["http", "https"] }).required(),
  email: Joi.string().email().required(),
  pages: Joi.number().integer().min(1).max(10000).required(),
  draft: Joi.boolean().required(),
  state: Joi.string().valid("draft", "published", "archived").required(),
  tags: Joi.array().items(slug).max(8).required(),
  author: Joi.object({
    name: Joi.string().min(1).max(80).required(),
    role: Joi.string().valid("author", "editor").required(),
  }).required(),
  published: Joi.string().isoDate().raw().required(),
});
const params = Joi.object({ id: Joi.number().integer().min(1).required() });
const query = Joi.object({
  page: Joi.number().integer().min(1).max(1000).default(1),
  sort: Joi.string().valid("newest", "title").default("newest"),
});

const check = (rules) => (req, res, next) => {
  req.valid = {};
  for (const [part, schema] of Object.entries(rules)) {
    const { value, error } = schema.validate(req[part], { abortEarly: false });
    if (error) return res.status(400).json({ errors: error.details });
    req.valid[part] = value;
  }
  next();
};

app.get("/", (req, res) => res.send("hello"));
app.get("/articles/:id", check({ params, query }), (req, res) => res.json(withId(stored, req.valid.params.id)));
app.post("/articles", check({ body: article }), (req, res) => res.status(201).json(withId(req.valid.body, 1234)));

const server = app.listen(0, "127.0.0.1", () =>
  console.log(`listening on http://127.0.0.1:${server.address().port}`));
