/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The register of custody at the master's door: workers ask up to which frame the custodian of a sender's epoch has them
 * (net/custody.h); they are answered when the answer is durable.
 */
#include "base/assert.h"
#include "base/atomics.h"
#include "master/ingest_private.h"

/*
 * Of a worker that was connected here itself, and now is to another worker: what its connection brought is counted, so this
 * is how far we were its custodian. Nothing more may come over that connection.
 */
static uint64_t counted_here(struct mr_ingest *ingest, const struct mr_custody_ask *ask)
{
    uint32_t index = mr_table_find(&ingest->sender_ids, ask->subject);
    struct mr_ingest_sender *sender;

    if (index == MR_TABLE_NONE)
        return mr_store_position(ingest->config.store, ask->subject);
    sender = &ingest->senders[index];
    if (sender->peer) {
        struct mr_peer *peer = sender->peer;

        sender->peer = NULL;
        peer->sender = MR_TABLE_NONE;
        mr_peer_refuse(ingest, peer, MR_WIRE_ERROR_STATE,
                       "the same sender has gone to another receiver");
    }
    return sender->applied;
}

static void answer(struct mr_ingest *ingest, const struct mr_ingest_answer *entry)
{
    uint32_t index = mr_table_find(&ingest->sender_ids, entry->asker);
    struct mr_peer *peer = index == MR_TABLE_NONE ? NULL : ingest->senders[index].peer;

    if (!peer || peer->linger_until_ns) /* it asks again over its next connection */
        return;
    (void)mr_conn_answer(&peer->conn, &entry->body);
    mr_peer_note(ingest, peer);
}

static enum mr_status decide(struct mr_ingest *ingest, struct mr_ingest_answer *entry)
{
    struct mr_custody_ask *ask = &entry->body;
    uint64_t counted = ask->is_claim ? 0 : counted_here(ingest, ask);

    if (counted > ask->position)
        ask->position = counted;
    return mr_store_decide(ingest->config.store, ask->subject, ask->epoch, &ask->position,
                           &entry->ticket);
}

void mr_ingest_ask(struct mr_ingest *ingest, struct mr_peer *peer,
                   const struct mr_frame *frame)
{
    struct mr_ingest_answer entry = {.asker = peer->id};

    mr_count_single_writer(&ingest->counters.questions, 1);
    if (peer->sender == MR_TABLE_NONE || mr_ask_get(frame->payload, &entry.body) != MR_OK)
        mr_peer_refuse(ingest, peer, MR_WIRE_ERROR_FORMAT, "bad ASK");
    else if (ingest->answer_count == MR_INGEST_ANSWERS_MAX ||
             decide(ingest, &entry) != MR_OK)
        mr_peer_refuse(ingest, peer, MR_WIRE_ERROR_BUSY,
                       "too many questions to the register");
    else if (mr_store_is_decided(ingest->config.store, entry.ticket))
        answer(ingest, &entry);
    else
        ingest->answers[ingest->answer_count++] = entry;
}

void mr_ingest_tell_answers(struct mr_ingest *ingest)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < ingest->answer_count; i++) {
        const struct mr_ingest_answer *entry = &ingest->answers[i];

        if (mr_store_is_decided(ingest->config.store, entry->ticket))
            answer(ingest, entry);
        else
            ingest->answers[kept++] = *entry;
    }
    MR_DEBUG_ASSERT(kept <= ingest->answer_count);
    ingest->answer_count = kept;
}
