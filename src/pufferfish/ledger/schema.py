# SPDX-License-Identifier: Apache-2.0
"""Schema: the tables of a ledger file, and what they refuse whoever writes to them.

Types are checked by CHECK, since STRICT tables cannot be opened by SQLite before 3.37. Triggers
keep what was charged: no release is deleted, and nothing but its state ever changes.
"""

#: "PFLG": what SQLite files of this kind say of themselves, and the version of their tables.
APPLICATION = 0x50464C47
VERSION = 3

NOTICE = (
    "This ledger is private: it holds digests of the tables that were protected, and the plans. "
    "Do not publish it, and do not pass it on with a release. Keep one ledger for all releases "
    "about a secret: a copy of it does not know what is charged to the other."
)

SCHEMA = """
CREATE TABLE notice (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    text TEXT NOT NULL CHECK (typeof(text) = 'text')
);
CREATE TABLE dataset (
    name TEXT NOT NULL PRIMARY KEY CHECK (typeof(name) = 'text'),
    secret TEXT NOT NULL CHECK (typeof(secret) = 'text'),
    budget TEXT NOT NULL CHECK (typeof(budget) = 'text'),
    digest TEXT NOT NULL CHECK (typeof(digest) = 'text'),
    rows INTEGER NOT NULL CHECK (typeof(rows) = 'integer' AND rows >= 0),
    other_people INTEGER NOT NULL CHECK (other_people IN (0, 1)),
    opened TEXT NOT NULL CHECK (typeof(opened) = 'text'),
    version INTEGER NOT NULL DEFAULT 0 CHECK (typeof(version) = 'integer'),
    UNIQUE (secret, digest)
);
CREATE TABLE release (
    sequence INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE CHECK (typeof(id) = 'text'),
    dataset TEXT NOT NULL REFERENCES dataset,
    public TEXT NOT NULL CHECK (typeof(public) = 'text'),
    plan TEXT NOT NULL CHECK (typeof(plan) = 'text'),
    own INTEGER NOT NULL CHECK (own IN (0, 1)),
    bound TEXT NOT NULL CHECK (typeof(bound) = 'text'),
    kind TEXT NOT NULL CHECK (typeof(kind) = 'text'),
    time TEXT NOT NULL CHECK (typeof(time) = 'text'),
    state TEXT NOT NULL CHECK (state IN ('charged', 'released'))
);
CREATE INDEX release_of_dataset ON release (dataset);
CREATE TRIGGER dataset_stays BEFORE DELETE ON dataset
    BEGIN SELECT RAISE(ABORT, 'a dataset is never deleted'); END;
CREATE TRIGGER budget_stays
    BEFORE UPDATE OF name, secret, budget, digest, rows, other_people, opened ON dataset
    BEGIN SELECT RAISE(ABORT, 'a dataset and its budget never change'); END;
CREATE TRIGGER release_stays BEFORE DELETE ON release
    BEGIN SELECT RAISE(ABORT, 'a release is never deleted'); END;
CREATE TRIGGER release_is_final BEFORE UPDATE ON release
    WHEN OLD.state <> 'charged' OR NEW.state <> 'released' OR
        (OLD.sequence, OLD.id, OLD.dataset, OLD.public, OLD.plan, OLD.own, OLD.bound, OLD.kind,
            OLD.time) IS NOT
        (NEW.sequence, NEW.id, NEW.dataset, NEW.public, NEW.plan, NEW.own, NEW.bound, NEW.kind,
            NEW.time)
    BEGIN SELECT RAISE(ABORT, 'a release never changes'); END;
CREATE TRIGGER version_of_dataset AFTER INSERT ON release
    BEGIN UPDATE dataset SET version = version + 1 WHERE name = NEW.dataset; END;
"""
