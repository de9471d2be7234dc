# SPDX-License-Identifier: Apache-2.0
"""Schema: the tables of a ledger file, and what they refuse whoever writes to them.

Types are checked by CHECK, since STRICT tables cannot be opened by SQLite before 3.37. Triggers
keep what was charged: no release is deleted, and nothing but its state ever changes.
"""

#: "PFLG": what SQLite files of this kind say of themselves, and the version of their tables.
APPLICATION = 0x50464C47
VERSION = 2

NOTICE = (
    "This ledger is private: it holds counts of the table that was protected, and the plans. "
    "Do not publish it, and do not pass it on with a release. Keep one ledger for all releases "
    "about a secret: a copy of it does not know what is charged to the other."
)

SCHEMA = """
CREATE TABLE notice (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    text TEXT NOT NULL CHECK (typeof(text) = 'text')
);
CREATE TABLE account (
    secret TEXT NOT NULL PRIMARY KEY CHECK (typeof(secret) = 'text'),
    budget TEXT NOT NULL CHECK (typeof(budget) = 'text'),
    opened TEXT NOT NULL CHECK (typeof(opened) = 'text'),
    version INTEGER NOT NULL DEFAULT 0 CHECK (typeof(version) = 'integer')
);
CREATE TABLE source (
    secret TEXT NOT NULL REFERENCES account,
    digest TEXT NOT NULL CHECK (typeof(digest) = 'text'),
    rows INTEGER NOT NULL CHECK (typeof(rows) = 'integer' AND rows >= 0),
    first_seen TEXT NOT NULL CHECK (typeof(first_seen) = 'text'),
    PRIMARY KEY (secret, digest)
);
CREATE TABLE joint_counts (
    secret TEXT NOT NULL,
    digest TEXT NOT NULL,
    columns TEXT NOT NULL CHECK (typeof(columns) = 'text'),
    counts BLOB NOT NULL CHECK (typeof(counts) = 'blob'),
    PRIMARY KEY (secret, digest, columns),
    FOREIGN KEY (secret, digest) REFERENCES source
);
CREATE TABLE unit_counts (
    secret TEXT NOT NULL,
    digest TEXT NOT NULL,
    unit TEXT NOT NULL CHECK (typeof(unit) = 'text'),
    row_order TEXT NOT NULL CHECK (typeof(row_order) = 'text'),
    columns TEXT NOT NULL CHECK (typeof(columns) = 'text'),
    counts BLOB NOT NULL CHECK (typeof(counts) = 'blob'),
    PRIMARY KEY (secret, digest, unit, row_order, columns),
    FOREIGN KEY (secret, digest) REFERENCES source
);
CREATE TABLE release (
    sequence INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE CHECK (typeof(id) = 'text'),
    secret TEXT NOT NULL,
    digest TEXT NOT NULL,
    columns TEXT NOT NULL CHECK (typeof(columns) = 'text'),
    mechanism TEXT NOT NULL CHECK (typeof(mechanism) = 'text'),
    plan TEXT NOT NULL CHECK (typeof(plan) = 'text'),
    epsilon TEXT NOT NULL CHECK (typeof(epsilon) = 'text'),
    bound TEXT NOT NULL CHECK (typeof(bound) = 'text'),
    how TEXT NOT NULL CHECK (typeof(how) = 'text'),
    detail TEXT NOT NULL CHECK (typeof(detail) = 'text'),
    time TEXT NOT NULL CHECK (typeof(time) = 'text'),
    state TEXT NOT NULL CHECK (state IN ('charged', 'released')),
    FOREIGN KEY (secret, digest) REFERENCES source
);
CREATE INDEX release_of_source ON release (secret, digest);
CREATE TRIGGER account_stays BEFORE DELETE ON account
    BEGIN SELECT RAISE(ABORT, 'an account is never deleted'); END;
CREATE TRIGGER budget_stays BEFORE UPDATE OF secret, budget, opened ON account
    BEGIN SELECT RAISE(ABORT, 'a budget never changes'); END;
CREATE TRIGGER source_stays BEFORE DELETE ON source
    BEGIN SELECT RAISE(ABORT, 'a table is never forgotten'); END;
CREATE TRIGGER counts_stay BEFORE UPDATE ON joint_counts
    BEGIN SELECT RAISE(ABORT, 'the counts of a table never change'); END;
CREATE TRIGGER unit_counts_stay BEFORE UPDATE ON unit_counts
    BEGIN SELECT RAISE(ABORT, 'the counts of a table never change'); END;
CREATE TRIGGER release_stays BEFORE DELETE ON release
    BEGIN SELECT RAISE(ABORT, 'a release is never deleted'); END;
CREATE TRIGGER release_is_final BEFORE UPDATE ON release
    WHEN OLD.state <> 'charged' OR NEW.state <> 'released' OR
        (OLD.sequence, OLD.id, OLD.secret, OLD.digest, OLD.columns, OLD.mechanism, OLD.plan,
            OLD.epsilon, OLD.bound, OLD.how, OLD.detail, OLD.time) IS NOT
        (NEW.sequence, NEW.id, NEW.secret, NEW.digest, NEW.columns, NEW.mechanism, NEW.plan,
            NEW.epsilon, NEW.bound, NEW.how, NEW.detail, NEW.time)
    BEGIN SELECT RAISE(ABORT, 'a release never changes'); END;
CREATE TRIGGER version_of_source AFTER INSERT ON source
    BEGIN UPDATE account SET version = version + 1 WHERE secret = NEW.secret; END;
CREATE TRIGGER version_of_counts AFTER INSERT ON joint_counts
    BEGIN UPDATE account SET version = version + 1 WHERE secret = NEW.secret; END;
CREATE TRIGGER version_of_unit_counts AFTER INSERT ON unit_counts
    BEGIN UPDATE account SET version = version + 1 WHERE secret = NEW.secret; END;
CREATE TRIGGER version_of_release AFTER INSERT ON release
    BEGIN UPDATE account SET version = version + 1 WHERE secret = NEW.secret; END;
"""
