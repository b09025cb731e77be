/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A worker that is killed (kill -9) at any moment and comes back with its spool (docs/why/2026-11-20-spool.md), for spin. custody.pml has a
 * sender among many receivers; here it has one, and what is beyond "used" counts: the analysis in memory, the delta, the next level.
 *
 *     S --frames--> W: log in the spool --> analysis, in memory --> outbox in the spool --deltas--> M
 *
 * S has N frames and keeps each until it is acknowledged. W is killed, or a connection on either side of it breaks, FAULTS times, at any
 * moment; what was on its way then is lost from any point on. Claimed: no frame is counted twice at M, ever; when all is quiet, each is
 * there, once.
 *
 *     tests/model/check.sh
 *
 * Each of these takes a rule away, and must be found out:
 *     -DNO_DEDUP         W takes a frame that it has already
 *     -DNO_DEDUP_ABOVE   M takes a delta that it has already
 *     -DNO_TRANSACTION   the delta is in the spool before what it covers is
 *     -DNO_KEEP          a frame is acknowledged before it is in the spool
 *     -DNO_OUTBOX        the outbox is in memory
 */
#ifndef N
#define N 3
#endif
#ifndef FAULTS
#define FAULTS 3
#endif
#define LOG_MAX (N * (FAULTS + 1))

chan frames = [2] of {byte};
chan frame_acks = [2] of {byte};
chan deltas = [2] of {byte};
chan delta_acks = [2] of {byte};

byte faults = FAULTS;
byte used[N + 1]; /* how often each frame is counted at M */

/* S */
byte sent = 0, acked = 0;

/* W: in its spool. */
byte log[LOG_MAX + 1];
byte log_size = 0, covered = 0, deltas_made = 0;
byte start[LOG_MAX + 1], end[LOG_MAX + 1]; /* of delta i: behind this place of the log, up to that one */
/* W: in its memory. */
byte taken = 0;    /* the last frame; from the log after a restart */
byte waiting = 0;  /* NO_KEEP: taken, not in the log yet */
byte analysed = 0; /* up to this place of the log */
byte told = 0;     /* up to this one in a delta */
byte delta_sent = 0, delta_acked = 0;

/* M: all of it is durable, a commit before each acknowledgement. */
byte delta_seen = 0;

inline lose(channel)
{
    do
    :: len(channel) > 0 -> channel?_
    :: len(channel) == 0 -> break
    od
}

inline append(frame)
{
    log_size++;
    assert(log_size <= LOG_MAX);
    log[log_size] = frame
}

active proctype sender()
{
    byte x;

end_sender:
    do
    :: atomic { sent < N && nfull(frames) -> sent++; frames!sent }
    :: atomic { frame_acks?x ->
        if
        :: x > acked -> acked = x
        :: else
        fi;
        x = 0 }
    od
}

active proctype worker()
{
    byte x;

end_worker:
    do
    :: atomic { waiting == 0 && frames?[x] ->
        frames?x;
        assert(x <= taken + 1);
        if
        :: x == taken + 1 ->
            taken = x;
#ifdef NO_KEEP
            waiting = x
#else
            append(x)
#endif
        :: x <= taken ->
#ifdef NO_DEDUP
            append(x)
#else
            skip
#endif
        fi;
        if
        :: nfull(frame_acks) -> frame_acks!taken
        :: full(frame_acks) /* a later one tells as much */
        fi;
        x = 0 }
    :: atomic { waiting > 0 -> append(waiting); waiting = 0 }
    /* An acknowledgement that found no room is made up for. */
    :: atomic { acked < taken && empty(frames) && empty(frame_acks) -> frame_acks!taken }
    :: atomic { analysed < log_size -> analysed++ }
    :: atomic { analysed > told ->
        deltas_made++;
        start[deltas_made] = told;
        end[deltas_made] = analysed;
        told = analysed;
#ifndef NO_TRANSACTION
        covered = told
#endif
        }
#ifdef NO_TRANSACTION
    :: atomic { covered < told -> covered = told }
#endif
    :: atomic { delta_sent < deltas_made && nfull(deltas) -> delta_sent++; deltas!delta_sent }
    :: atomic { delta_acks?x ->
        if
        :: x > delta_acked -> delta_acked = x
        :: else
        fi;
        x = 0 }
    od
}

active proctype above()
{
    byte x, at;

end_above:
    do
    :: atomic { deltas?x ->
        assert(x <= delta_seen + 1);
        if
        :: x == delta_seen + 1 -> delta_seen = x; at = start[x]
#ifdef NO_DEDUP_ABOVE
        :: x <= delta_seen -> at = start[x]
#else
        :: x <= delta_seen -> at = end[x]
#endif
        fi;
        do
        :: at < end[x] -> at++; used[log[at]]++; assert(used[log[at]] == 1)
        :: else -> break
        od;
        if
        :: nfull(delta_acks) -> delta_acks!delta_seen
        :: full(delta_acks)
        fi;
        x = 0;
        at = 0 }
    :: atomic { delta_acked < delta_seen && empty(deltas) && empty(delta_acks) -> delta_acks!delta_seen }
    od
}

/* Both ends go on from what they know. */
inline break_below()
{
    lose(frames);
    lose(frame_acks);
    sent = acked
}

inline break_above()
{
    lose(deltas);
    lose(delta_acks);
    delta_sent = delta_acked
}

active proctype fate()
{
end_fate:
    do
    :: atomic { faults > 0 -> faults--; break_below() }
    :: atomic { faults > 0 -> faults--; break_above() }
    :: atomic { faults > 0 -> /* kill -9, and started again */
        faults--;
        waiting = 0;
        analysed = covered;
        told = covered;
        if /* what was acknowledged of the outbox is written now and then */
        :: delta_acked = 0
        :: true
        fi;
#ifdef NO_OUTBOX
        deltas_made = delta_acked;
#endif
        break_below();
        break_above();
        taken = (log_size == 0 -> 0 : log[log_size]) }
    od
}

init
{
    byte frame = 1;

    timeout; /* nothing can move any more */
    do
    :: frame <= N -> assert(used[frame] == 1); frame++
    :: else -> break
    od
}
