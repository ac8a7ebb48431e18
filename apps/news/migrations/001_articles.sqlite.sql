-- What the app keeps: one row for each article, found by its place in the feed (guid) or its address.
create table articles (
  id           integer primary key autoincrement,  -- never given twice: links to a removed one stay dead
  guid         text not null unique,               -- the feed's own name for it; its URL where it has none
  url          text not null unique,
  title        text not null check (length(title) between 1 and 200),
  summary      text,
  image        text,
  tag          text not null default 'news',
  published_at timestamp not null default (strftime('%Y-%m-%dT%H:%M:%SZ', 'now'))
);

create index articles_by_time on articles (published_at desc, id desc);
create index articles_by_tag on articles (tag, published_at desc, id desc);
