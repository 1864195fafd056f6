-- A timeline as the original program leaves it: one prompt, stopped between storing event 4 and projecting it.
PRAGMA journal_mode=WAL;
CREATE TABLE IF NOT EXISTS sessionstream_sessions (session_id TEXT PRIMARY KEY, snapshot_ordinal INTEGER NOT NULL DEFAULT 0);
CREATE TABLE IF NOT EXISTS sessionstream_events (session_id TEXT NOT NULL, ordinal INTEGER NOT NULL, name TEXT NOT NULL, payload_json TEXT NOT NULL, created_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ','now')), PRIMARY KEY(session_id, ordinal));
CREATE TABLE IF NOT EXISTS sessionstream_entities (session_id TEXT NOT NULL, kind TEXT NOT NULL, entity_id TEXT NOT NULL, created_ordinal INTEGER NOT NULL, last_event_ordinal INTEGER NOT NULL, payload_json TEXT NOT NULL, PRIMARY KEY(session_id, kind, entity_id));
CREATE TABLE IF NOT EXISTS sessionstream_entity_versions (session_id TEXT NOT NULL, kind TEXT NOT NULL, entity_id TEXT NOT NULL, ordinal INTEGER NOT NULL, created_ordinal INTEGER NOT NULL, last_event_ordinal INTEGER NOT NULL, tombstone INTEGER NOT NULL DEFAULT 0, payload_json TEXT NOT NULL, PRIMARY KEY(session_id, kind, entity_id, ordinal));
CREATE TABLE IF NOT EXISTS sessionstream_projection_cursors (projector TEXT NOT NULL, session_id TEXT NOT NULL, cursor INTEGER NOT NULL DEFAULT 0, updated_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ','now')), PRIMARY KEY(projector, session_id));
CREATE TABLE IF NOT EXISTS sessionstream_errors (id INTEGER PRIMARY KEY AUTOINCREMENT, created_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ','now')), kind TEXT NOT NULL, session_id TEXT, ordinal INTEGER, event_name TEXT, error TEXT NOT NULL);
CREATE INDEX IF NOT EXISTS sessionstream_events_by_session ON sessionstream_events(session_id, ordinal);
PRAGMA user_version = 1;
INSERT INTO sessionstream_sessions VALUES ('project-notes', 3);
INSERT INTO sessionstream_events VALUES
    ('project-notes', 1, 'ChatUserMessageAccepted', '{"messageId":"chat-msg-1-user","role":"user","text":"hi"}', '2026-08-01T10:00:00.000Z'),
    ('project-notes', 2, 'ChatRunStarted', '{"messageId":"chat-msg-1","prompt":"hi"}', '2026-08-01T10:00:00.010Z'),
    ('project-notes', 3, 'ChatTextPatch', '{"messageId":"chat-msg-1:text:1","text":"Hel"}', '2026-08-01T10:00:00.020Z'),
    ('project-notes', 4, 'ChatTextPatch', '{"messageId":"chat-msg-1:text:1","text":"lo"}', '2026-08-01T10:00:00.030Z');
INSERT INTO sessionstream_entities VALUES
    ('project-notes', 'ChatMessage', 'chat-msg-1-user', 1, 1, '{"text":"hi"}'),
    ('project-notes', 'ChatMessage', 'chat-msg-1:text:1', 3, 3, '{"text":"Hel"}');
INSERT INTO sessionstream_entity_versions VALUES
    ('project-notes', 'ChatMessage', 'chat-msg-1-user', 1, 1, 1, 0, '{"text":"hi"}'),
    ('project-notes', 'ChatMessage', 'chat-msg-1:text:1', 3, 3, 3, 0, '{"text":"Hel"}');
INSERT INTO sessionstream_projection_cursors VALUES ('timeline', 'project-notes', 3, '2026-08-01T10:00:00.000Z');
INSERT INTO sessionstream_errors (kind, error) VALUES ('fanout', 'nobody listens');
