-- The schema for PostgreSQL. First the functions of SQLite's that queries and constraints use, on paths of one key:
-- one text of each query serves both databases.

CREATE FUNCTION json_valid(doc TEXT) RETURNS BOOLEAN LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
  RETURN doc::json IS NOT NULL;
EXCEPTION WHEN OTHERS THEN
  RETURN FALSE;
END $$;
CREATE FUNCTION json_type(doc TEXT) RETURNS TEXT LANGUAGE sql IMMUTABLE AS $$ SELECT json_typeof(doc::json) $$;
CREATE FUNCTION json_extract(doc TEXT, path TEXT) RETURNS TEXT LANGUAGE sql IMMUTABLE AS $$
  SELECT doc::json ->> substr(path, 3) $$;
CREATE FUNCTION json_number(doc TEXT, path TEXT) RETURNS BIGINT LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE v WHEN 'true' THEN 1 WHEN 'false' THEN 0 ELSE trunc(v::numeric)::bigint END
  FROM (SELECT doc::json ->> substr(path, 3) AS v) p $$;
CREATE FUNCTION json_each(doc TEXT, path TEXT) RETURNS TABLE (value TEXT) LANGUAGE sql IMMUTABLE AS $$
  SELECT json_array_elements_text(CASE json_typeof(doc::json -> substr(path, 3)) WHEN 'array'
    THEN doc::json -> substr(path, 3) END) $$;
CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION '%', TG_ARGV[0]; END $$;

-- The schema for SQLite, translated.

-- Waiting processes are notified of a change, and look.
CREATE FUNCTION tell() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_notify('ralph_' || TG_TABLE_SCHEMA, '');
  RETURN NULL;
END $$;
DO $$
DECLARE name TEXT;
BEGIN
  FOR name IN SELECT tablename FROM pg_tables WHERE schemaname = current_schema() LOOP
    EXECUTE format('CREATE TRIGGER tell AFTER INSERT OR UPDATE OR DELETE ON %I EXECUTE FUNCTION tell()', name);
  END LOOP;
END $$;
