/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Schema version 1. Rows of the model's tables have its index as key (`idx`), so that
 * statistics refer to things by a small number; ids are 16-byte blobs in printed order.
 * Numbers are unsigned 64-bit in SQLite's signed integers. `..._total` is over all time,
 * `..._stat` per window (Unix s: of 1 s for shapes and entries, of 60 s for paths), with
 * the window first, so that the oldest lie together: they go (master/store_trim.c).
 */
#include "master/store_private.h"

#define TIMES(name) name "_sum INTEGER, " name "_min INTEGER, " name "_max INTEGER"
#define ALL_TIMES TIMES("time")
#define SELF_AND_TOTAL TIMES("self") ", " TIMES("total")
#define PATH_STATS                                                                       \
    "ok INTEGER, failed INTEGER, incomplete INTEGER, " SELF_AND_TOTAL ", histogram BLOB"
#define SHAPE_STATS                                                                      \
    "ok INTEGER, failed INTEGER, calls INTEGER, folded INTEGER, first_ns INTEGER, "      \
    "last_ns INTEGER, " ALL_TIMES ", histogram BLOB"
#define COVERAGE(name) name "_traces INTEGER, " name "_calls INTEGER, " name "_ns INTEGER"
#define ENTRY_STATS                                                                      \
    COVERAGE("whole")                                                                    \
    ", " COVERAGE("folded") ", " COVERAGE("paths") ", " COVERAGE("incomplete")

const char mr_store_schema[] =
    "CREATE TABLE meta(key TEXT PRIMARY KEY, value) WITHOUT ROWID;"
    "CREATE TABLE journal(number INTEGER PRIMARY KEY, sender BLOB NOT NULL,"
    " sequence INTEGER NOT NULL, type INTEGER NOT NULL, bytes BLOB NOT NULL);"
    "CREATE TABLE sender(id BLOB PRIMARY KEY, sequence INTEGER NOT NULL,"
    " seen_ns INTEGER NOT NULL) WITHOUT ROWID;"
    "CREATE TABLE site(idx INTEGER PRIMARY KEY, id BLOB NOT NULL, known INTEGER,"
    " type INTEGER, quality INTEGER, module TEXT, build_id BLOB, offset INTEGER,"
    " name TEXT, file TEXT, line INTEGER);"
    "CREATE TABLE scope(idx INTEGER PRIMARY KEY, id BLOB NOT NULL, known INTEGER,"
    " app TEXT, version TEXT, host TEXT);"
    "CREATE TABLE source(idx INTEGER PRIMARY KEY, id BLOB NOT NULL, known INTEGER,"
    " scope INTEGER, worker BLOB, host TEXT, pid INTEGER, app TEXT, version TEXT,"
    " exe TEXT, start_ns INTEGER, end_ns INTEGER, clock INTEGER, state INTEGER,"
    " policy INTEGER);"
    "CREATE TABLE stream(idx INTEGER PRIMARY KEY, source INTEGER NOT NULL,"
    " stream INTEGER NOT NULL, last INTEGER, reduced INTEGER, held INTEGER,"
    " lost_ring_full INTEGER, lost_block_timeout INTEGER, lost_overwritten INTEGER,"
    " lost_budget INTEGER, lost_source_died INTEGER, lost_clock INTEGER,"
    " lost_format INTEGER, lost_nested INTEGER, lost_exit INTEGER);"
    "CREATE TABLE path(idx INTEGER PRIMARY KEY, id BLOB NOT NULL, parent INTEGER,"
    " scope INTEGER NOT NULL, site INTEGER NOT NULL, flags INTEGER NOT NULL);"
    "CREATE TABLE path_total(path INTEGER PRIMARY KEY, " PATH_STATS ");"
    "CREATE TABLE path_stat(window INTEGER, path INTEGER, " PATH_STATS
    ", PRIMARY KEY(window, path)) WITHOUT ROWID;"
    "CREATE TABLE entry(idx INTEGER PRIMARY KEY, path INTEGER NOT NULL, " ENTRY_STATS ");"
    "CREATE TABLE entry_stat(window INTEGER, entry INTEGER, " ENTRY_STATS
    ", PRIMARY KEY(window, entry)) WITHOUT ROWID;"
    "CREATE TABLE node(idx INTEGER PRIMARY KEY, id BLOB NOT NULL,"
    " site INTEGER NOT NULL, exactness INTEGER NOT NULL, children BLOB NOT NULL);"
    "CREATE TABLE shape(idx INTEGER PRIMARY KEY, node BLOB NOT NULL,"
    " entry INTEGER NOT NULL);"
    "CREATE TABLE shape_total(shape INTEGER PRIMARY KEY, " SHAPE_STATS ");"
    "CREATE TABLE shape_stat(window INTEGER, shape INTEGER, " SHAPE_STATS
    ", PRIMARY KEY(window, shape)) WITHOUT ROWID;"
    "CREATE TABLE outer_frame(idx INTEGER PRIMARY KEY, scope INTEGER NOT NULL,"
    " site INTEGER NOT NULL, why INTEGER NOT NULL);"
    "CREATE TABLE counter(idx INTEGER PRIMARY KEY, name TEXT NOT NULL, value INTEGER);"
    "INSERT INTO meta VALUES('schema_version', 1);";

/* Tables that came later: they are made where they are missing, and a reader goes without. */
const char *const mr_store_additions[] = {
    "CREATE TABLE IF NOT EXISTS custody(subject BLOB NOT NULL, epoch INTEGER NOT NULL,"
    " position INTEGER NOT NULL, decided_ns INTEGER NOT NULL,"
    " PRIMARY KEY(subject, epoch)) WITHOUT ROWID;",

    "CREATE TABLE IF NOT EXISTS span_counter(idx INTEGER PRIMARY KEY, id BLOB NOT NULL,"
    " known INTEGER, name TEXT, unit TEXT);",

    "CREATE TABLE IF NOT EXISTS counter_note(idx INTEGER PRIMARY KEY,"
    " scope INTEGER NOT NULL, counter INTEGER NOT NULL, absent TEXT);",

    "CREATE TABLE IF NOT EXISTS path_counter(idx INTEGER PRIMARY KEY,"
    " path INTEGER NOT NULL, counter INTEGER NOT NULL, calls INTEGER,"
    " backward INTEGER, " SELF_AND_TOTAL ");",

    "CREATE TABLE IF NOT EXISTS note(idx INTEGER PRIMARY KEY, about BLOB NOT NULL,"
    " site BLOB NOT NULL, key TEXT, value TEXT, version INTEGER);",

    /* joined: nodes as in a delta; part: what waits to be joined, empty where none is. */
    "CREATE TABLE IF NOT EXISTS joined(idx INTEGER PRIMARY KEY, nodes BLOB NOT NULL);",

    "CREATE TABLE IF NOT EXISTS joined_total(joined INTEGER PRIMARY KEY, ok INTEGER,"
    " failed INTEGER, incomplete INTEGER, first_ns INTEGER, last_ns INTEGER,"
    " " ALL_TIMES ", slowest BLOB, histogram BLOB);",

    "CREATE TABLE IF NOT EXISTS joined_edge(idx INTEGER PRIMARY KEY,"
    " joined INTEGER NOT NULL, place INTEGER NOT NULL, count INTEGER,"
    " clamped INTEGER, " ALL_TIMES ", histogram BLOB);",

    "CREATE TABLE IF NOT EXISTS part(idx INTEGER PRIMARY KEY, bytes BLOB NOT NULL);",

    /* One per reason; calls: the bytes of docs/FORMAT.md, sites by idx. */
    "CREATE TABLE IF NOT EXISTS exemplar(idx INTEGER PRIMARY KEY, entry INTEGER NOT NULL,"
    " shape INTEGER, why INTEGER NOT NULL, status INTEGER NOT NULL,"
    " source INTEGER NOT NULL, stream INTEGER NOT NULL, before INTEGER NOT NULL,"
    " start_ns INTEGER, total_ns INTEGER, calls INTEGER, tree BLOB NOT NULL);",

    "CREATE TABLE IF NOT EXISTS shape_path(idx INTEGER PRIMARY KEY,"
    " shape INTEGER NOT NULL, path INTEGER NOT NULL, ok INTEGER, failed INTEGER,"
    " " SELF_AND_TOTAL ");",

    NULL};

_Static_assert(MR_STORE_SCHEMA_VERSION == 1, "the last line of the schema tells it");
