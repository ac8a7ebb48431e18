create table articles (
  id    integer primary key autoincrement,
  title text not null,
  url   text not null unique,
  tag   text not null
);
