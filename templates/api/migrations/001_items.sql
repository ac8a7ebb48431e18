-- Runs once, at the first start. A change of the tables goes into a file of its own: 002_what_it_does.sql.
create table items (
  id         integer primary key,
  title      text not null check (length(title) between 1 and 200),
  done       integer not null default 0 check (done in (0, 1)),
  created_at text not null default (strftime('%Y-%m-%dT%H:%M:%SZ', 'now'))
);
