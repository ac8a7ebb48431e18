-- Full-text search: the words of title and summary, as they stand in any language ("simple") and without
-- their accents. The index holds words only, and PostgreSQL keeps it by itself. It does so with no other
-- search path than its own (17 and later), so what the functions call is looked up here, not in a text.
create function articles_plain(text) returns text language sql immutable strict parallel safe
  return regexp_replace(normalize($1, NFD), '[\u0300-\u036f]', '', 'g');

create function articles_words(title text, summary text) returns tsvector language sql immutable parallel safe
  return setweight(to_tsvector('simple', articles_plain(title)), 'A') ||
         setweight(to_tsvector('simple', articles_plain(coalesce(summary, ''))), 'B');

create index articles_search on articles using gin (articles_words(title, summary));
