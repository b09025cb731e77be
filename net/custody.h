/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who has a sender's frames, when the sender moves between receivers and connections break at any moment
 * (docs/FORMAT.md section 1, docs/why/2026-11-20-custody.md; tests/model/custody.pml is this file for the model checker).
 *
 * The frames that a sender gives one receiver in one go are an epoch; that receiver is their custodian. A frame is *taken*
 * when the receiver has it, *acknowledged* when it said so, *settled* when the sender has said that it knows. A settled
 * frame is the custodian's for good, and only settled frames are analysed. Frames that were sent and not acknowledged are
 * in doubt for the sender, those taken and not settled for the custodian; when the connection is gone, the register at the
 * master decides once per epoch up to which frame the custodian has them: as the custodian claims, or as the sender shows
 * to its next receiver, whoever asks first.
 *
 *     VOID --begin--> OPEN --connection gone--> BROKEN --claim--> CLAIMING --verdict--> CLOSED --begin--> ...
 *                      ^--------- goes on ---------+
 *
 *     switch (mr_custody_greet(&custody, self, &hello)) ...   // a HELLO came
 *     mr_custody_take(&custody, sequence);                    // a frame is here
 *     while (mr_custody_settle(&custody, told)) ...           // SETTLE came: analyse up to custody.settled
 *
 * Plain data of one sender at one receiver; one thread at a time; no I/O.
 */
#ifndef MR_NET_CUSTODY_H
#define MR_NET_CUSTODY_H

#include "base/id.h"

#include <stdbool.h>
#include <stdint.h>

/* What a sender shows in its HELLO. */
struct mr_custody_hello {
    struct mr_id custodian; /* of `epoch`; zero: none yet */
    uint64_t epoch;         /* the last one that a receiver has welcomed it to; 0: none */
    uint64_t acked;         /* in that epoch: all up to it is acknowledged */
    uint64_t sent;          /* the last frame that was ever sent in it; >= acked */
    uint64_t attempt;       /* 1, 2, ...: connections opened by this incarnation */
    bool is_told;           /* false: a sender that knows nothing of custody */
    bool was_shown;         /* the epoch was shown in a HELLO that nobody answered */
};

enum mr_custody_state {
    MR_CUSTODY_VOID,
    MR_CUSTODY_OPEN,
    MR_CUSTODY_BROKEN,
    MR_CUSTODY_CLAIMING,
    MR_CUSTODY_CLOSED
};

/* A sender at a receiver. Zeroed: VOID. */
struct mr_custody {
    enum mr_custody_state state;
    uint64_t epoch;
    uint64_t taken, settled; /* sequences; settled <= taken */
    uint64_t attempt;        /* of the newest HELLO that was looked at */
};

enum mr_custody_step {
    MR_CUSTODY_GO_ON, /* the epoch goes on: welcome it at taken + 1 */
    MR_CUSTODY_BEGIN, /* a new epoch with nothing in doubt: mr_custody_begin() at hello->sent */
    MR_CUSTODY_ASK, /* ask the register for (sender, hello->epoch, hello->acked), then begin at its answer */
    MR_CUSTODY_CLAIM_FIRST, /* what this receiver has of an earlier visit must be claimed, then greet again */
    MR_CUSTODY_STALE /* an older HELLO than one that came: close */
};

/* What to do with a HELLO. CLAIM_FIRST may be answered by mr_custody_claim(). */
enum mr_custody_step mr_custody_greet(struct mr_custody *custody, struct mr_id self,
                                      const struct mr_custody_hello *hello);
/* Epoch hello->epoch + 1 begins behind frame `position`. Not while OPEN, BROKEN or CLAIMING. */
void mr_custody_begin(struct mr_custody *custody, const struct mr_custody_hello *hello,
                      uint64_t position);
/* The next frame is here. */
void mr_custody_take(struct mr_custody *custody, uint64_t sequence);
/* SETTLE: whether there is more to analyse now. False, nothing changed, for a frame that was never taken, or one settled. */
bool mr_custody_settle(struct mr_custody *custody, uint64_t sequence);
/* The connection is gone. */
void mr_custody_break(struct mr_custody *custody);
/* Begins to claim what is taken, for the register; false: there is nothing to claim, and the epoch is closed. BROKEN only. */
bool mr_custody_claim(struct mr_custody *custody);
/* The register's answer to a claim: what is not settled now is another receiver's. */
void mr_custody_decide(struct mr_custody *custody, uint64_t position);

#endif
