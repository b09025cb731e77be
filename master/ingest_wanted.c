/* SPDX-License-Identifier: Apache-2.0 */
/* Requests for exemplars (master/wanted.h) on their way down: each worker that takes them is told what is wanted now. */
#include "base/atomics.h"
#include "master/ingest_private.h"

static bool is_to_be_told(const struct mr_peer *peer, uint32_t revision)
{
    return peer->takes_wanted && peer->wanted_revision != revision &&
           peer->conn.greeted && !peer->linger_until_ns && !peer->is_ending;
}

void mr_ingest_tell_wanted(struct mr_ingest *ingest, uint64_t now_ns)
{
    struct mr_wanted_book *book = ingest->config.wanted;
    uint8_t payload[MR_WANTED_SIZE_MAX];
    size_t size = 0;
    uint32_t revision, seen;

    if (!book)
        return;
    mr_wanted_book_tick(book, now_ns);
    seen = revision = mr_wanted_board_revision(&book->board);
    if (revision == ingest->wanted_revision && !ingest->is_untold)
        return;
    for (struct mr_peer *peer = ingest->peers; peer; peer = peer->next) {
        mr_count_single_writer(&ingest->counters.looks, 1);
        if (!is_to_be_told(peer, revision))
            continue;
        if (size == 0) {
            struct mr_wanted_list list;

            revision = mr_wanted_board_take(&book->board, now_ns, &list);
            size = mr_wanted_put(&list, payload);
        }
        peer->wanted_revision = revision;
        /* One whose connection is broken is told again over its next one. */
        if (mr_conn_wanted(&peer->conn, mr_span_of(payload, size)) == MR_OK)
            mr_count_single_writer(&ingest->counters.wanted_told, 1);
        mr_peer_note(ingest, peer);
    }
    ingest->wanted_revision = seen; /* not what was taken: some knew the one before */
    ingest->is_untold = false;
}
