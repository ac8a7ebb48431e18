-- One file for SQLite and PostgreSQL: the app makes all keys itself.

-- Who has which name, until it is given back or was not used for long.
create table people (
  id      text primary key,          -- never given twice: who takes a name over is somebody else
  name    text not null,
  folded  text not null unique,      -- the name as names are compared
  seen_at bigint not null            -- seconds since 1970
);

create table rooms (
  slug       text primary key,
  last       bigint not null default 0,    -- number of the newest message
  roster     bigint not null default 0,    -- grows with each change of who is here
  created_at timestamp not null
);

-- The messages of a room are numbered 1, 2, 3, ... without a gap: who sees a gap knows that something is missing.
create table messages (
  room      text not null references rooms,
  number    bigint not null,
  author_id text not null,           -- no reference: what was said outlives who has said it
  author    text not null,
  text      text not null,
  nonce     text not null,           -- what the sender calls it, so that sending it again is not saying it twice
  sent_at   timestamp not null,
  primary key (room, number),
  unique (author_id, nonce)
);

-- Who is in a room, as each worker knows it: [{ "id": ..., "name": ... }]. A worker that has died says no longer
-- that it lives, and its people are gone with it.
create table rosters (
  worker      text not null,
  room        text not null references rooms,
  people      json not null,
  alive_until bigint not null,       -- seconds since 1970
  primary key (room, worker)
);

create index rosters_by_worker on rosters (worker);
create index people_by_time on people (seen_at);

insert into rooms (slug, created_at) values ('lobby', current_timestamp);
