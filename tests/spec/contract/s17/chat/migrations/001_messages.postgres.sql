create table messages (
  id     bigint primary key generated always as identity,
  room   text not null,
  author text not null,
  text   text not null
);
