/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Custody of one sender's frames while it moves between receivers (docs/why/2026-11-20-custody.md), for spin.
 *
 * A sender S has N frames. It connects to receivers, any at any time; connections break at any time, at either end, and
 * what was on its way in either direction is lost from any point on, or still arrives at a receiver that S has given up. A
 * receiver forgets everything but its spool when it is killed. The master's register answers late, or answers and the
 * answer is lost. Claimed: when all is quiet, every frame was used exactly once; never twice.
 *
 *     tests/model/check.sh
 *
 * Each of these takes a rule away, and must be found out:
 *     -DNO_REGISTER   who takes over a sender does not ask what became of the frames in doubt
 *     -DNO_SETTLE     a receiver uses a frame as soon as it has it
 *     -DNO_ASKED      a receiver goes on with an epoch that S has shown to another receiver meanwhile
 *     -DNO_CLOSE      a receiver goes on with an epoch that it has begun to claim
 *     -DNO_ATTEMPT    a receiver answers a HELLO that is older than one that it has answered
 */
#ifndef N
#define N 3 /* frames */
#endif
#ifndef FAULTS
#define FAULTS 3 /* breaks and kills, in all */
#endif
#define CONNECTIONS (FAULTS + 2)
#define EPOCHS (CONNECTIONS + 2)
#define RECEIVERS 2
#define NONE 255

mtype = {HELLO, DATA, SETTLE, WELCOME, ACK}

/* HELLO: custodian, epoch, acked, sent, asked. DATA: frame. SETTLE: frame. */
chan up[CONNECTIONS] = [3] of {mtype, byte, byte, byte, byte, bit};
/* WELCOME: epoch, next. ACK: frame. */
chan down[CONNECTIONS] = [2] of {mtype, byte, byte};

byte to[CONNECTIONS]; /* the receiver at its other end */
byte connections = 0, faults = FAULTS;
byte current = NONE;   /* the connection that S has open */
bit gone[CONNECTIONS]; /* its receiver has closed it */

/* The register: by epoch. 0: nothing is written; else 1 + the frame up to which the custodian of the epoch owns. */
byte register_at[EPOCHS];
byte used[N + 1]; /* how often each frame was taken into the analysis */

inline use_up_to(x, limit)
{
    do
    :: x < limit -> x++; used[x]++; assert(used[x] == 1)
    :: else -> break
    od
}

active proctype sender()
{
    byte acked = 0, sent = 0, epoch = 0, custodian = NONE, told = 0, e, n;
    bit asked = 0, open = 0;

end_sender:
    do
    :: atomic { current == NONE && connections < CONNECTIONS ->
        current = connections;
        connections++;
        if
        :: to[current] = 0
        :: to[current] = 1
        fi;
        up[current]!HELLO, custodian, epoch, acked, sent, asked;
        asked = 1;
        open = 0 }
    :: atomic { current != NONE && open && sent < N && nfull(up[current]) ->
        sent++;
        up[current]!DATA, sent, 0, 0, 0, 0 }
    :: atomic { current != NONE && open && told < acked && nfull(up[current]) ->
        told = acked;
        up[current]!SETTLE, acked, 0, 0, 0, 0 }
    :: atomic { current != NONE && nempty(down[current]) ->
        if
        :: down[current]?WELCOME, e, n ->
            assert(n >= acked + 1); /* it never asks for what S has dropped */
            acked = n - 1;
            sent = n - 1;
            told = 0;
            epoch = e;
            custodian = to[current];
            asked = 0;
            open = 1
        :: down[current]?ACK, n, _ -> assert(n >= acked && n <= sent); acked = n
        fi;
        n = 0;
        e = 0 }
    :: atomic { current != NONE && (gone[current] || faults > 0) -> /* it breaks, for S */
        if
        :: gone[current]
        :: else -> faults--
        fi;
        current = NONE;
        open = 0 }
    od
}

mtype = {VOID, OPEN, BROKEN, CLAIMING, CLOSED}

#ifdef NO_CLOSE
#define MAY_GREET true
#define MAY_GO_ON (state == OPEN || state == BROKEN || state == CLAIMING)
#else
#define MAY_GREET (state != CLAIMING) /* the claim comes first */
#define MAY_GO_ON (state == OPEN || state == BROKEN)
#endif
#ifdef NO_ASKED
#define IS_SURE true
#else
#define IS_SURE (!hasked)
#endif
#ifdef NO_ATTEMPT
#define IS_STALE(c) false
#else
#define IS_STALE(c) (seen != NONE && c < seen)
#endif
#define HAS_HELLO(c) (c < connections && to[c] == self && MAY_GREET && up[c]?[HELLO, _, _, _, _, _])

inline greet(c)
{
    atomic {
        up[c]?<HELLO, hc, he, ha, hs, hasked>;
        if
        :: connection != NONE && c > connection -> gone[connection] = 1; connection = NONE
        :: else
        fi;
        if
        :: IS_STALE(c) -> up[c]?HELLO, _, _, _, _, _; gone[c] = 1
        :: else ->
        seen = c;
        if
        :: MAY_GO_ON && hc == self && he == epoch && IS_SURE ->
            up[c]?HELLO, _, _, _, _, _;
            state = OPEN;
            connection = c;
            down[c]!WELCOME, epoch, taken + 1
        :: else ->
            if
            :: state == VOID || state == CLOSED ->
                q = ha;
#ifndef NO_REGISTER
                if
                :: ha < hs && register_at[he] == 0 -> register_at[he] = 1 + ha
                :: ha < hs && register_at[he] != 0 -> q = register_at[he] - 1
                :: ha == hs
                fi;
#endif
                assert(q >= ha && q <= hs);
                up[c]?HELLO, _, _, _, _, _;
                epoch = he + 1;
                settled = q;
                taken = q;
                state = OPEN;
                connection = c;
                down[c]!WELCOME, epoch, q + 1
            :: else -> state = CLAIMING /* what it has of S' last visit, first */
            fi
        fi
        fi;
        hc = 0; he = 0; ha = 0; hs = 0; hasked = 0; q = 0
    }
}

proctype receiver(byte self)
{
    /* In the spool: they outlive a kill. */
    byte epoch = 0, settled = 0, taken = 0, seen = NONE;
    mtype state = VOID;
    /* In memory. */
    byte connection = NONE, f, he, hc, ha, hs, q;
    bit hasked;

end_receiver:
    do
    /* Frames, and word of what S knows to be acknowledged. */
    :: atomic { connection != NONE && up[connection]?[DATA, f, _, _, _, _] ->
        up[connection]?DATA, f, _, _, _, _;
        assert(f <= taken + 1);
        if
        :: f == taken + 1 -> taken = f
        :: else
        fi;
#ifdef NO_SETTLE
        use_up_to(settled, taken);
#endif
        if
        :: nfull(down[connection]) -> down[connection]!ACK, taken, 0
        :: full(down[connection]) /* a later one tells as much, or the connection breaks */
        fi;
        f = 0 }
    :: atomic { connection != NONE && up[connection]?[SETTLE, f, _, _, _, _] ->
        up[connection]?SETTLE, f, _, _, _, _;
        assert(f <= taken);
        use_up_to(settled, f);
        f = 0 }
    /* An ACK that found no room is made up for. */
    :: atomic { connection != NONE && connection == current && empty(up[connection]) && empty(down[connection]) &&
                settled < taken && state == OPEN ->
        down[connection]!ACK, taken, 0 }
    /* The connection is gone: S gave it up, or this end does. */
    :: atomic { connection != NONE && connection != current ->
        connection = NONE;
        state = BROKEN }
    :: atomic { connection != NONE && faults > 0 -> /* also: killed, and started again with its spool */
        faults--;
        gone[connection] = 1;
        connection = NONE;
        state = BROKEN }
    /* What S does not know to be acknowledged may be another's: claim it. */
    :: atomic { state == BROKEN -> state = CLAIMING }
    :: atomic { state == CLAIMING ->
#ifndef NO_REGISTER
        if
        :: settled == taken -> q = taken /* nothing to claim, so nothing is written */
        :: settled < taken && register_at[epoch] == 0 -> register_at[epoch] = 1 + taken; q = taken
        :: settled < taken && register_at[epoch] != 0 -> q = register_at[epoch] - 1
        fi;
#else
        q = taken;
#endif
        if
        :: q > taken -> q = taken
        :: else
        fi;
        use_up_to(settled, q);
        taken = settled;
        state = CLOSED;
        q = 0 }
    :: atomic { state == CLAIMING && settled < taken && faults > 0 && register_at[epoch] == 0 ->
        faults--; /* written, and the answer is lost */
        register_at[epoch] = 1 + taken }
    /* A HELLO, also of a connection that S has given up since. */
    :: HAS_HELLO(0) -> greet(0)
    :: HAS_HELLO(1) -> greet(1)
    :: HAS_HELLO(2) -> greet(2)
    :: HAS_HELLO(3) -> greet(3)
#if FAULTS > 2
    :: HAS_HELLO(4) -> greet(4)
#endif
#if FAULTS > 3
    :: HAS_HELLO(5) -> greet(5)
#endif
    od
}

init
{
    atomic {
        run receiver(0);
        run receiver(1)
    }
    timeout; /* nothing can move any more */
    byte frame = 1;
    do
    :: current == NONE -> break /* the model ran out of connections */
    :: current != NONE && frame <= N -> assert(used[frame] == 1); frame++
    :: else -> break
    od
}
