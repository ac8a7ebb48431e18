// What both peers of bench/run stack answer with.
exports.stored = {
  title: "What a request costs", slug: "what-a-request-costs", url: "https://news.example/articles/cost",
  email: "ann@example.com", pages: 12, draft: false, state: "published", tags: ["http", "lua", "servers"],
  author: { name: "Ann Example", role: "editor" }, published: "2026-11-30",
};

exports.withId = (fields, id) => ({ id, ...fields });
