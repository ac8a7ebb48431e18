create table messages (
  id     integer primary key autoincrement,
  room   text not null,
  author text not null,
  text   text not null
);
