-- Full-text search. The index holds words only; titles and summaries stay in `articles`, and the
-- triggers tell it of every change.
create virtual table articles_search using fts5 (
  title, summary,
  content = 'articles', content_rowid = 'id',
  tokenize = 'unicode61 remove_diacritics 2'
);

create trigger articles_search_insert after insert on articles begin
  insert into articles_search (rowid, title, summary) values (new.id, new.title, new.summary);
end;

create trigger articles_search_delete after delete on articles begin
  insert into articles_search (articles_search, rowid, title, summary)
    values ('delete', old.id, old.title, old.summary);
end;

create trigger articles_search_update after update of title, summary on articles begin
  insert into articles_search (articles_search, rowid, title, summary)
    values ('delete', old.id, old.title, old.summary);
  insert into articles_search (rowid, title, summary) values (new.id, new.title, new.summary);
end;
