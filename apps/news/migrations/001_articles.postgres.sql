-- What the app keeps: one row for each article, found by its place in the feed (guid) or its address.
create table articles (
  id           bigint primary key generated always as identity,
  guid         text not null unique,               -- the feed's own name for it; its URL where it has none
  url          text not null unique,
  title        text not null check (length(title) between 1 and 200),
  summary      text,
  image        text,
  tag          text not null default 'news',
  published_at timestamp(0) not null default (now() at time zone 'UTC')
);

create index articles_by_time on articles (published_at desc, id desc);
create index articles_by_tag on articles (tag, published_at desc, id desc);
