create table articles (
  id    bigint primary key generated always as identity,
  title text not null,
  url   text not null unique,
  tag   text not null
);
