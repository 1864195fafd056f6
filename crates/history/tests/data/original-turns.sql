-- Turns as an older release of the original program leaves them: a column has another name, some are missing.
PRAGMA journal_mode=WAL;
CREATE TABLE turns (conv_id TEXT NOT NULL, session_id TEXT NOT NULL, turn_id TEXT NOT NULL, created_at_ms INTEGER NOT NULL, turn_metadata_json TEXT NOT NULL DEFAULT '{}', turn_data_json TEXT NOT NULL DEFAULT '{}', PRIMARY KEY(conv_id, session_id, turn_id));
CREATE TABLE blocks (block_id TEXT NOT NULL, content_hash TEXT NOT NULL, hash_algorithm TEXT NOT NULL DEFAULT 'sha256-canonical-json-v1', kind TEXT NOT NULL, role TEXT NOT NULL DEFAULT '', payload_json TEXT NOT NULL DEFAULT '{}', block_metadata_json TEXT NOT NULL DEFAULT '{}', first_seen_at_ms INTEGER NOT NULL, PRIMARY KEY(block_id, content_hash));
CREATE TABLE turn_block_membership (conv_id TEXT NOT NULL, session_id TEXT NOT NULL, turn_id TEXT NOT NULL, phase TEXT NOT NULL, snapshot_created_at_ms INTEGER NOT NULL, ordinal INTEGER NOT NULL, block_id TEXT NOT NULL, content_hash TEXT NOT NULL, PRIMARY KEY(conv_id, session_id, turn_id, phase, snapshot_created_at_ms, ordinal), FOREIGN KEY(conv_id, session_id, turn_id) REFERENCES turns(conv_id, session_id, turn_id) ON DELETE CASCADE, FOREIGN KEY(block_id, content_hash) REFERENCES blocks(block_id, content_hash));
INSERT INTO turns VALUES ('project-notes', 'project-notes', 'turn-1', 1700000000000, '{"geppetto.inference_id@v1":"run-7","geppetto.runtime@v1":{"runtime_key":"default"}}', '{}');
INSERT INTO turns VALUES ('other', 'other', 'turn-2', 1600000000000, '{"inference_id":"run-8","geppetto.runtime@v1":7}', '{}');
INSERT INTO turns VALUES ('broken', 'broken', 'turn-3', 0, 'not json', '{}');
INSERT INTO blocks (block_id, content_hash, kind, role, payload_json, first_seen_at_ms) VALUES
    ('block-1', '15292f5c5545c1c25e33a7f20302c9042a190240d993a27cc4ae971866583e06', 'user', 'user', '{"text":"a \u003c b \u0026 c"}', 1700000000000),
    ('block-2', 'f00d', 'LLM_TEXT', 'assistant', '{"text":"yes"}', 1700000000000);
INSERT INTO turn_block_membership VALUES
    ('project-notes', 'project-notes', 'turn-1', 'final', 1700000000500, 0, 'block-1', '15292f5c5545c1c25e33a7f20302c9042a190240d993a27cc4ae971866583e06'),
    ('project-notes', 'project-notes', 'turn-1', 'final', 1700000000500, 1, 'block-2', 'f00d'),
    ('project-notes', 'project-notes', 'turn-1', 'failed', 1700000000900, 0, 'block-1', '15292f5c5545c1c25e33a7f20302c9042a190240d993a27cc4ae971866583e06');
