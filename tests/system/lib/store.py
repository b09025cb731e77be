# SPDX-License-Identifier: Apache-2.0
"""What a master's store says, with ids instead of the numbers that are its own, so that two stores can be compared: {table: Counter of
rows}. Left out is what depends on when events came: paths of a shape (which have a budget per second), counters, notes."""
import collections
import sqlite3


def varints(data):
    at = 0
    while at < len(data):
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 0x7f) << shift
            shift += 7
            if byte < 0x80:
                break
        yield value


def tree(data, sites):
    """The calls of an exemplar: their sites by id."""
    numbers = list(varints(data))
    calls = [numbers[i:i + 7] for i in range(1, len(numbers), 7)]
    return tuple((up, sites[site], *rest) for up, site, *rest in calls)


class Reader:
    def __init__(self, store):
        self.db = sqlite3.connect(f"file:{store / 'millrace.sqlite'}?mode=ro", uri=True)
        self.ids = {table: dict(self.db.execute(f"SELECT idx, id FROM {table}")) for table in ("site", "path", "source")}
        self.ids["entry"] = {entry: self.ids["path"][path] for entry, path in self.db.execute("SELECT idx, path FROM entry")}
        self.ids["shape"] = {shape: (self.ids["entry"][entry], node)
                             for shape, node, entry in self.db.execute("SELECT idx, node, entry FROM shape")}
        self.ids["joined"] = dict(self.db.execute("SELECT idx, nodes FROM joined"))

    def table(self, name, key, drop=()):
        """Its rows, without what is dropped; the column `key` by its id. Rows in which nothing is counted are left out: a path has
        one as soon as it is named, even by an open trace that was told of, and of the unknown calls below which a stream begins none are counted."""
        cursor = self.db.execute(f"SELECT * FROM {name}")
        columns = [column[0] for column in cursor.description]
        at = columns.index(key)
        kept = [i for i, column in enumerate(columns) if column not in drop]
        counted = [i for i in kept if i != at]
        return collections.Counter(tuple(self.ids[key][row[i]] if i == at else row[i] for i in kept)
                                   for row in cursor if any(row[i] for i in counted))

    def exemplars(self):
        rows = self.db.execute("SELECT entry, shape, why, status, source, stream, before, start_ns, total_ns, calls, tree FROM exemplar")
        return collections.Counter((self.ids["entry"][entry], self.ids["shape"].get(shape), why, status, self.ids["source"][source], *rest,
                                    tree(calls, self.ids["site"]))
                                   for entry, shape, why, status, source, *rest, calls in rows)


def rows(store):
    reader = Reader(store)
    found = {name: reader.table(name, key) for name, key in
             (("path_total", "path"), ("path_stat", "path"), ("shape_total", "shape"), ("shape_stat", "shape"), ("entry_stat", "entry"),
              ("joined_total", "joined"))}
    for name, key in (("entry", "path"), ("stream", "source"), ("joined_edge", "joined")):
        found[name] = reader.table(name, key, drop=("idx",))
    found["exemplar"] = reader.exemplars()
    reader.db.close()
    return found
