/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frames (docs/FORMAT.md section 2) and the raw control payloads (section 4). No I/O, no allocation; used by the probe
 * too, so nothing here may call malloc or stdio.
 */
#ifndef MR_NET_FRAME_H
#define MR_NET_FRAME_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/id.h"
#include "base/span.h"
#include "base/status.h"
#include "net/wire.h"

struct mr_frame {
    uint8_t type; /* enum mr_frame_type */
    uint16_t flags;
    uint64_t sequence;
    struct mr_span payload;
};

/* Writes the header for `payload` (which must lie still until it is sent) to `out`. */
void mr_frame_put_header(uint8_t type, uint16_t flags, uint64_t sequence,
                         struct mr_span payload, uint8_t out[MR_WIRE_HEADER_SIZE]);

/*
 * Takes one frame off the front of `bytes`. MR_OK; MR_AGAIN when more bytes are needed (*need is how many in all, from
 * the front of `bytes`); MR_EFORMAT, MR_EVERSION, MR_ELIMIT, MR_ECHECKSUM with the reason in `error`.
 */
enum mr_status mr_frame_take(struct mr_span *bytes, uint32_t max_frame,
                             struct mr_frame *frame, size_t *need,
                             struct mr_error *error);

/* The same of bytes that it took before and that lie still: nothing is checked again. False at their end. */
bool mr_frame_take_again(struct mr_span *bytes, struct mr_frame *frame);

const char *mr_frame_type_name(uint8_t type); /* "?" for an unknown one */
int mr_frame_is_data(uint8_t type);

struct mr_welcome {
    uint16_t version;
    uint32_t max_frame;
    uint64_t next_sequence;
    uint64_t credit;
    uint16_t flags; /* enum mr_welcome_flag; unknown ones are kept */
    /* Custody (net/custody.h): the epoch that begins or goes on, and whose it is. 0 and zero: the receiver knows none. */
    uint64_t epoch;
    struct mr_id receiver;
};
/* ASK and ANSWER: of the register at the master. */
struct mr_custody_ask {
    struct mr_id subject; /* the sender whose frames are in doubt */
    uint64_t epoch;
    uint64_t
        position; /* asked: up to which frame; answered: up to which the custodian has them */
    bool
        is_claim; /* asked by the epoch's custodian; else by the receiver that takes over */
};
struct mr_ack {
    uint64_t sequence;
    uint64_t credit;
};
struct mr_wire_error_text {
    uint16_t code; /* enum mr_wire_error */
    struct mr_span text;
};

#define MR_WELCOME_SIZE 48
#define MR_WELCOME_SIZE_MIN 24 /* without custody */
#define MR_ACK_SIZE 24
#define MR_BYE_SIZE 8
#define MR_MOVE_SIZE 4
#define MR_SETTLE_SIZE 8
#define MR_ASK_SIZE 40
#define MR_OFFER_SIZE 8
#define MR_RESUME_HEAD_SIZE 8 /* of RESUME, before its bytes */
#define MR_RESUME_BYTES_MAX (MR_WIRE_MAX_CONTROL - MR_RESUME_HEAD_SIZE)

void mr_welcome_put(const struct mr_welcome *welcome, uint8_t out[MR_WELCOME_SIZE]);
enum mr_status mr_welcome_get(struct mr_span payload, struct mr_welcome *welcome);
void mr_ack_put(uint64_t sequence, uint64_t credit, uint8_t out[MR_ACK_SIZE]);
enum mr_status mr_ack_get(struct mr_span payload, struct mr_ack *ack);
/* Size of the payload; text longer than capacity - 4 is cut. */
size_t mr_error_put(enum mr_wire_error code, const char *text, uint8_t *out,
                    size_t capacity);
enum mr_status mr_error_get(struct mr_span payload, struct mr_wire_error_text *error);
void mr_bye_put(enum mr_bye_reason reason, uint8_t out[MR_BYE_SIZE]);
enum mr_status mr_bye_get(struct mr_span payload, uint8_t *reason);
void mr_move_put(uint32_t jitter_ms, uint8_t out[MR_MOVE_SIZE]);
enum mr_status mr_move_get(struct mr_span payload, uint32_t *jitter_ms);
void mr_settle_put(uint64_t sequence, uint8_t out[MR_SETTLE_SIZE]);
enum mr_status mr_settle_get(struct mr_span payload, uint64_t *sequence);
void mr_offer_put(enum mr_offer_step step, uint8_t out[MR_OFFER_SIZE]);
/* MR_EFORMAT also for a step that there is not. */
enum mr_status mr_offer_get(struct mr_span payload, enum mr_offer_step *step);
/* RESUME: the 1 to MR_RESUME_BYTES_MAX bytes follow the head; nothing in net/ reads them. */
void mr_resume_frame_put_head(uint64_t sequence, uint8_t out[MR_RESUME_HEAD_SIZE]);
enum mr_status mr_resume_frame_get(struct mr_span payload, uint64_t *sequence,
                                   struct mr_span *bytes); /* borrowed */
/* Of ASK and ANSWER alike. */
void mr_ask_put(const struct mr_custody_ask *ask, uint8_t out[MR_ASK_SIZE]);
enum mr_status mr_ask_get(struct mr_span payload, struct mr_custody_ask *ask);

#endif
