/* SPDX-License-Identifier: Apache-2.0 */
#include "streams.h"

#include <stdlib.h>
#include <string.h>

#include "net/chunk.h"

#define NAMED_FIRST 65536u
#define MODULES_FIRST (UINT32_C(1) << 24)
#define OPEN_MAX 8192u
#define EXIT_BIT (UINT64_C(1) << 62)
#define HEADER 56
#define PHRASES 8u
#define PHRASE_MAX 600u /* events */

/* One record: its words, but for the time. */
struct event {
    uint32_t site; /* NAMED_FIRST or more: enter or exit */
    uint32_t kind, words;
    bool is_exit, is_gap; /* gap: `events` are missing here */
    uint64_t ticks;       /* as the thread saw it; may go back */
    uint64_t events;      /* that it stands for */
    uint64_t payload[16];
};

static uint64_t below(struct mr_test_random *random, uint64_t limit)
{
    return mr_test_random_below(random, limit);
}

static bool happens(struct mr_test_random *random, uint32_t rate, uint32_t of)
{
    return below(random, of) < rate;
}

static struct event *add(struct stream *stream)
{
    if (stream->count == stream->capacity) {
        stream->capacity = stream->capacity ? 2 * stream->capacity : 64;
        stream->events =
            realloc(stream->events, stream->capacity * sizeof(*stream->events));
        if (!stream->events)
            abort();
    }
    stream->events[stream->count] = (struct event){.events = 1};
    return &stream->events[stream->count++];
}

/* A run of events that leaves as many calls open as there were. */
struct phrase {
    size_t from, count;
};

/* An edge between call trees: each of its ends comes once at most. */
struct token {
    bool is_out, is_in;
};

/* Follows what is open roughly, so that most exits match. */
struct walker {
    struct mr_test_random *random;
    const struct mood *mood;
    struct stream *stream;
    uint64_t ticks;
    uint32_t open[OPEN_MAX], depth;
    uint32_t floor,
        wrappers; /* so many of the open calls hardly ever return; so many there will be */
    /* Of each open call: where its events begin, and how many odd things there were before. */
    size_t begin[OPEN_MAX];
    uint32_t odd, odd_before[OPEN_MAX];
    struct phrase phrases[PHRASES]; /* whole calls, to come again later */
    uint32_t phrase_count;
    struct phrase root; /* the last root that came again; of 0 events: none did */
    struct token messages[STREAMS_TOKENS], hand_offs[STREAMS_TOKENS]; /* of all streams */
};

static uint64_t next_ticks(struct walker *walker)
{
    struct mr_test_random *random = walker->random;
    const struct mood *mood = walker->mood;

    if (happens(random, mood->backward, 10000))
        return walker->ticks - below(random, walker->ticks < 5000 ? walker->ticks : 5000);
    if (happens(random, mood->leaps, 10000))
        walker->ticks += below(random, mood->leap + 1);
    else if (!happens(random, mood->equal, 10000))
        walker->ticks += below(random, mood->step + 1);
    return walker->ticks;
}

/* A wire site: a function of the first or second module, a span, or one that nobody tells. */
static uint32_t some_site(struct walker *walker)
{
    struct mr_test_random *random = walker->random;
    uint32_t number = (uint32_t)below(random, walker->mood->functions);

    if (happens(random, walker->mood->unknowns, 10000))
        return NAMED_FIRST + 1000 + number % 2;
    if (walker->mood->has_spans && below(random, 3) == 0)
        return NAMED_FIRST + number % STREAMS_NAMED;
    return script_modules[number % 4 == 3].site_base + 16 * (number % 64);
}

static void put_call(struct walker *walker, uint32_t site, bool is_exit)
{
    struct event *event = add(walker->stream);

    event->ticks = next_ticks(walker);
    event->is_exit = is_exit;
    event->site = site;
    if (site < MODULES_FIRST || !happens(walker->random, walker->mood->wides, 10000))
        return;
    for (uint32_t i = 0; i < SCRIPT_MODULES; i++)
        if (site - script_modules[i].site_base < SCRIPT_MODULE_SIZE) {
            event->site = 0;
            event->kind = 3;
            event->words = 1;
            event->payload[0] =
                script_modules[i].address + (site - script_modules[i].site_base);
        }
}

static void put_record(struct walker *walker, uint32_t kind, uint32_t words,
                       uint64_t events)
{
    struct event *event = add(walker->stream);

    event->ticks = next_ticks(walker);
    event->kind = kind;
    event->words = words;
    event->events = events;
    for (uint32_t i = 0; i < words; i++)
        event->payload[i] = mr_test_random_next(walker->random) >> 1;
}

static void put_loss(struct walker *walker)
{
    struct mr_test_random *random = walker->random;
    uint64_t pops = below(random, walker->depth + 2), pushes = below(random, 4);
    uint64_t events = pops + pushes + 2 * below(random, 10);
    struct event *event;

    put_record(walker, 2, 2, events);
    event = &walker->stream->events[walker->stream->count - 1];
    event->payload[0] = events | (1 + below(random, 9)) << 48;
    event->payload[1] = pops | pushes << 31;
    walker->depth -= (uint32_t)(pops < walker->depth ? pops : walker->depth);
    for (; pushes > 0 && walker->depth < walker->mood->depth; pushes--)
        walker->open[walker->depth++] = some_site(walker);
}

static void put_gap(struct walker *walker)
{
    struct event *event = add(walker->stream);

    event->is_gap = true;
    event->ticks = walker->ticks;
    event->events = 1 + below(walker->random, 50);
}

/* With the record of an unwind, or untold, so that the catcher exits next. */
static void put_unwind(struct walker *walker)
{
    struct mr_test_random *random = walker->random;
    uint32_t remains = (uint32_t)below(random, walker->depth + 2);
    bool is_told = below(random, 2);

    if (is_told) {
        put_record(walker, 15, 1, 1);
        walker->stream->events[walker->stream->count - 1].payload[0] =
            below(random, 10) ? remains : UINT64_C(1) << 62;
    }
    walker->depth = remains < walker->depth ? remains : walker->depth;
    if (!is_told && walker->depth)
        put_call(walker, walker->open[--walker->depth], true);
}

/* Frames of a landing, mostly of what is open, innermost first; now and then of anything. */
static void put_landing(struct walker *walker)
{
    struct mr_test_random *random = walker->random;
    uint32_t words = (uint32_t)below(random, 17), left = (uint32_t)below(random, 17);
    bool is_lie = below(random, 4) == 0;
    uint64_t *payload;

    put_record(walker, 18, words, 0);
    payload = walker->stream->events[walker->stream->count - 1].payload;
    payload[0] = left;
    for (uint32_t i = 1; i < words; i++) {
        uint32_t number = (uint32_t)below(random, walker->mood->functions), module, site;

        site = script_modules[number % 4 == 3].site_base + 16 * (number % 64);
        if (walker->depth > 0 && !is_lie &&
            walker->open[walker->depth - 1] >= MODULES_FIRST)
            site = walker->open[walker->depth - 1];
        if (walker->depth > 0 && i <= left)
            walker->depth--;
        module = site - script_modules[1].site_base < SCRIPT_MODULE_SIZE;
        payload[i] =
            (script_modules[module].address + (site - script_modules[module].site_base)) |
            below(random, 3) << 48 | below(random, 2) << 62;
    }
}

/* Records that are no calls: of known kinds, of a later version, counters. */
static void put_other(struct walker *walker)
{
    static const uint32_t kinds[][2] = {{10, 2}, {11, 1}, {12, 2}, {13, 1}};
    uint32_t which = (uint32_t)below(walker->random, 7);

    if (which < 4)
        put_record(walker, kinds[which][0], kinds[which][1], 1);
    else if (which == 4)
        put_record(walker, 14, (uint32_t)below(walker->random, 5), 0);
    else
        put_record(walker, 200, (uint32_t)below(walker->random, 16),
                   below(walker->random, 2));
}

/* An edge whose end of this kind is free, and mostly whose other end is not; STREAMS_TOKENS: none was found. */
static uint32_t some_token(struct walker *walker, struct token *tokens, bool is_out)
{
    uint32_t count = walker->mood->tokens, at = (uint32_t)below(walker->random, count);
    bool wants_other = below(walker->random, 5) > 0;

    for (uint32_t i = 0; i < 64; i++, at = (at + 1) % count) {
        bool *end = is_out ? &tokens[at].is_out : &tokens[at].is_in;
        bool has_other = is_out ? tokens[at].is_in : tokens[at].is_out;

        if (*end || (i < 32 && wants_other && !has_other && !is_out))
            continue;
        *end = true;
        return at;
    }
    return STREAMS_TOKENS;
}

/* A trace context: few traces, and of one now and then a part that is all zero. */
static void fill_context(struct walker *walker, uint32_t token, uint64_t *payload)
{
    const uint64_t spread = UINT64_C(0x9e3779b97f4a7c15);
    uint64_t span = (token + 1) * spread, trace = (token / 3 + 1) * spread;

    payload[0] = trace & (UINT64_MAX >> 2);
    payload[1] = (trace * spread) & (UINT64_MAX >> 2);
    payload[2] = (trace >> 60) | (span & (UINT64_MAX >> 6)) << 4;
    payload[2] &= UINT64_MAX >> 2;
    payload[3] = span >> 58 | below(walker->random, 2) << 8;
    if (below(walker->random, 40) == 0)
        payload[2] = payload[3] = 0;
}

static void put_link(struct walker *walker)
{
    static const uint32_t kinds[] = {4, 4, 5, 5, 6, 6, 7, 7, 8};
    uint32_t kind = kinds[below(walker->random, 9)], token = 0;
    uint64_t *payload;

    if (kind != 8)
        token = some_token(walker, kind < 6 ? walker->messages : walker->hand_offs,
                           kind == 4 || kind == 6);
    if (token == STREAMS_TOKENS)
        kind = 8;
    put_record(walker, kind, kind < 6 ? 4 : 1, 1);
    payload = walker->stream->events[walker->stream->count - 1].payload;
    payload[0] = kind == 8 && below(walker->random, 3) == 0 ? 0 : token + 1;
    if (kind < 6)
        fill_context(walker, token, payload);
}

static bool put_odd(struct walker *walker)
{
    const struct mood *mood = walker->mood;
    uint32_t dice = (uint32_t)below(walker->random, 10000), at = mood->losses;

    if (dice < at)
        put_loss(walker);
    else if (dice < (at += mood->gaps))
        put_gap(walker);
    else if (dice < (at += mood->cuts))
        put_record(walker, 17, 1, 0);
    else if (dice < (at += mood->unwinds))
        put_unwind(walker);
    else if (dice < (at += mood->landings))
        put_landing(walker);
    else if (dice < (at += mood->links))
        put_link(walker);
    else if (dice < (at += mood->strays))
        put_call(walker, some_site(walker), true);
    else if (dice < (at += mood->statuses)) {
        put_record(walker, 9, 1, 1);
        walker->stream->events[walker->stream->count - 1].payload[0] =
            below(walker->random, 3) > 0;
    } else if (dice < at + mood->others)
        put_other(walker);
    else
        return false;
    return true;
}

/* Says a phrase again; now and then something odd comes between, that opens and closes nothing. */
static void say(struct walker *walker, const struct phrase *phrase, uint64_t times)
{
    while (times-- > 0)
        for (size_t i = 0; i < phrase->count; i++) {
            struct event copy = walker->stream->events[phrase->from + i];

            if (happens(walker->random, walker->mood->statuses, 100000))
                put_record(walker, 10, 2, 1);
            copy.ticks = next_ticks(walker);
            *add(walker->stream) = copy;
        }
}

static void remember(struct walker *walker, const struct phrase *phrase)
{
    uint32_t at = walker->phrase_count < PHRASES
                      ? walker->phrase_count++
                      : (uint32_t)below(walker->random, PHRASES);

    walker->phrases[at] = *phrase;
}

/* A call has ended in order: perhaps it comes again at once, and perhaps another does that once was. */
static void repeat(struct walker *walker)
{
    struct phrase phrase = {.from = walker->begin[walker->depth],
                            .count =
                                walker->stream->count - walker->begin[walker->depth]};

    if (walker->mood->says_roots_inside && walker->depth > walker->floor &&
        walker->root.count && below(walker->random, 8) == 0)
        say(walker, &walker->root, below(walker->random, 1 + walker->mood->repeats / 4));
    if (walker->mood->repeats_roots && walker->depth > walker->floor)
        return;
    if (walker->odd_before[walker->depth] != walker->odd || phrase.count > PHRASE_MAX)
        return;
    if (below(walker->random, 4) == 0)
        remember(walker, &phrase);
    if (below(walker->random, 8) == 0) {
        say(walker, &phrase, below(walker->random, walker->mood->repeats + 1));
        if (walker->depth == walker->floor)
            walker->root = phrase;
    }
    if (walker->phrase_count && below(walker->random, 8) == 0)
        say(walker, &walker->phrases[below(walker->random, walker->phrase_count)],
            below(walker->random, 1 + walker->mood->repeats / 4));
}

static void enter(struct walker *walker)
{
    uint32_t site = some_site(walker);

    walker->begin[walker->depth] = walker->stream->count;
    walker->odd_before[walker->depth] = walker->odd;
    walker->open[walker->depth++] = site;
    put_call(walker, site, false);
}

/* Whether a call that hardly ever returns is due. Now and then one of those that are open may return. */
static bool is_wrapping(struct walker *walker)
{
    if (walker->floor > walker->depth)
        walker->floor = walker->depth;
    if (walker->floor > 0 && below(walker->random, 300) == 0)
        walker->floor--;
    return walker->depth == walker->floor && walker->floor < walker->wrappers &&
           walker->depth < walker->mood->depth && below(walker->random, 4) == 0;
}

static void put_some(struct walker *walker)
{
    uint32_t limit = walker->mood->depth < OPEN_MAX ? walker->mood->depth : OPEN_MAX;

    if (put_odd(walker)) {
        walker->odd++;
        return;
    }
    if (is_wrapping(walker)) {
        walker->floor++;
        enter(walker);
        return;
    }
    if (walker->depth == walker->floor ||
        (walker->depth < limit && happens(walker->random, walker->mood->opens, 100))) {
        enter(walker);
        return;
    }
    put_call(walker, walker->open[--walker->depth], true);
    if (walker->mood->repeats)
        repeat(walker);
}

static void make_stream(struct walker *walker)
{
    uint64_t limit = 1 + below(walker->random, 2 * (uint64_t)walker->mood->events);

    while (walker->stream->count < limit)
        put_some(walker);
}

void streams_make(struct mr_test_random *random, const struct mood *mood,
                  struct streams *streams)
{
    static struct walker walker;

    memset(walker.messages, 0, sizeof(walker.messages));
    memset(walker.hand_offs, 0, sizeof(walker.hand_offs));
    streams->count = mood->streams;
    streams->has_spans = mood->has_spans;
    streams->has_late = mood->has_late;
    for (uint32_t i = 0; i < STREAMS_NAMED; i++) {
        bool is_root = mood->has_roots && below(random, 3) == 0;
        bool is_outer = mood->has_outers && below(random, 3) == 0;

        streams->span_flags[i] = (is_root ? 1u : 0) | (is_outer ? 2u : 0);
    }
    for (uint32_t i = 0; i < streams->count; i++) {
        struct stream *stream = &streams->items[i];

        walker.random = random;
        walker.mood = mood;
        walker.stream = stream;
        walker.depth = 0;
        walker.floor = 0;
        walker.wrappers = (uint32_t)below(random, mood->wrappers + 1);
        walker.odd = 0;
        /* A loss opens calls that have no place where they began: none of them is taken for a phrase. */
        memset(walker.odd_before, 0xff, sizeof(walker.odd_before));
        walker.phrase_count = 0;
        walker.root = (struct phrase){0, 0};
        walker.ticks = 1000 + below(random, 2000000000);
        *stream = (struct stream){.first_ticks = walker.ticks};
        stream->start_site = below(random, 2)
                                 ? script_modules[0].site_base +
                                       16 * (uint32_t)below(random, mood->functions)
                                 : 0;
        make_stream(&walker);
    }
}

void streams_clear(struct streams *streams)
{
    for (uint32_t i = 0; i < streams->count; i++)
        free(streams->items[i].events);
    streams->count = 0;
}

/* Writing. */

struct writer {
    struct mr_test_random *random;
    const struct cut *cut;
    struct script *script;
    uint64_t *words;
    size_t count, capacity;
    uint8_t *frame;
    size_t frame_size;
    uint32_t frame_chunks;
    /* by stream */
    size_t at[STREAMS_MAX];
    uint64_t ticks[STREAMS_MAX], next_event[STREAMS_MAX];
    bool is_over[STREAMS_MAX];
};

static void put_word(struct writer *writer, uint64_t word)
{
    if (writer->count == writer->capacity) {
        writer->capacity = writer->capacity ? 2 * writer->capacity : 256;
        writer->words = realloc(writer->words, writer->capacity * sizeof(*writer->words));
        if (!writer->words)
            abort();
    }
    writer->words[writer->count++] = word;
}

static uint64_t head_of(const struct event *event, uint64_t ticks)
{
    uint64_t field = event->site ? event->site : event->words << 8 | event->kind;

    return (event->is_exit ? EXIT_BIT : 0) | field << 32 | (uint32_t)ticks;
}

/* With a sync where the step would not fit. */
static void put_event(struct writer *writer, const struct event *event, uint64_t *ticks)
{
    if (event->ticks > *ticks && event->ticks - *ticks >= INT32_MAX) {
        put_word(writer, UINT64_C(1) << 40 | UINT64_C(1) << 32);
        put_word(writer, event->ticks);
    }
    put_word(writer, head_of(event, event->ticks));
    for (uint32_t i = 0; i < event->words; i++)
        put_word(writer, event->payload[i]);
    if (event->ticks > *ticks)
        *ticks = event->ticks;
}

static void send_frame(struct writer *writer)
{
    struct op op = {
        .kind = OP_CHUNKS, .bytes = writer->frame, .size = writer->frame_size};

    if (!writer->frame)
        return;
    script_add(writer->script, op);
    writer->frame = NULL;
    writer->frame_size = 0;
    writer->frame_chunks = 0;
    if (happens(writer->random, writer->cut->ticks, 100))
        script_add(
            writer->script,
            (struct op){.kind = OP_TICK, .value = (uint32_t)below(writer->random, 400)});
    if (happens(writer->random, writer->cut->opens, 100))
        script_add(writer->script, (struct op){.kind = OP_OPEN});
}

static void append(struct writer *writer, const struct mr_chunk *chunk)
{
    writer->frame =
        realloc(writer->frame, writer->frame_size + HEADER + chunk->body.size);
    if (!writer->frame)
        abort();
    mr_chunk_put_header(chunk, writer->frame + writer->frame_size);
    if (chunk->body.size)
        memcpy(writer->frame + writer->frame_size + HEADER, chunk->body.data,
               chunk->body.size);
    writer->frame_size += HEADER + chunk->body.size;
    if (++writer->frame_chunks >= 1 + below(writer->random, writer->cut->frame_chunks))
        send_frame(writer);
}

/* The encoder is the product's: the reference reads what it makes. */
static void append_compact(struct writer *writer, struct mr_chunk *chunk)
{
    static struct mr_compact_workspace workspace;
    size_t capacity = 16 * chunk->body.size + 64, size;
    uint8_t *body = malloc(capacity);
    uint32_t records;

    if (!body)
        abort();
    size = mr_chunk_compact(chunk, &workspace, body, capacity, &records);
    if (size) {
        chunk->encoding = MR_CHUNK_COMPACT;
        chunk->records = records;
        chunk->body = mr_span_of(body, size);
    }
    append(writer, chunk);
    free(body);
}

static void put_chunk(struct writer *writer, uint32_t number, uint64_t header_ticks,
                      uint64_t events, uint8_t flags)
{
    struct mr_chunk chunk = {.flags = flags,
                             .stream = number + 1,
                             .epoch = SCRIPT_EPOCH,
                             .first_event = writer->next_event[number],
                             .events = events,
                             .ticks = header_ticks,
                             .records = (uint32_t)writer->count,
                             .body = mr_span_of(writer->words, writer->count * 8)};

    writer->next_event[number] += events;
    if (happens(writer->random, writer->cut->compact, 100))
        append_compact(writer, &chunk);
    else
        append(writer, &chunk);
    writer->count = 0;
}

/* One chunk of a stream, and what is missing before it. */
static void write_chunk(struct writer *writer, const struct stream *stream,
                        uint32_t number)
{
    uint64_t left = 1 + below(writer->random, writer->cut->chunk_max), events = 0;
    uint64_t header, ticks = writer->ticks[number];
    size_t *at = &writer->at[number];
    bool is_last;

    while (*at < stream->count && stream->events[*at].is_gap)
        writer->next_event[number] += stream->events[(*at)++].events;
    header = ticks;
    if (!writer->cut->keeps_header_time && *at < stream->count &&
        stream->events[*at].ticks > ticks && below(writer->random, 2))
        header = stream->events[*at].ticks;
    ticks = header;
    for (; left > 0 && *at < stream->count && !stream->events[*at].is_gap; left--) {
        events += stream->events[*at].events;
        put_event(writer, &stream->events[(*at)++], &ticks);
    }
    is_last = *at == stream->count && below(writer->random, 2);
    put_chunk(writer, number, header, events, is_last ? MR_CHUNK_LAST : 0);
    writer->ticks[number] = ticks;
    writer->is_over[number] = *at == stream->count;
    if (!writer->is_over[number] && happens(writer->random, writer->cut->idle, 100))
        put_chunk(writer, number, ticks, 0, 0);
}

static void tell_named(struct writer *writer, const struct streams *streams,
                       uint32_t from, uint32_t to)
{
    for (uint32_t i = from; i < to; i++)
        script_add(writer->script, (struct op){.kind = OP_NAMED,
                                               .number = NAMED_FIRST + i,
                                               .value = streams->span_flags[i]});
}

static void tell_facts(struct writer *writer, const struct streams *streams)
{
    uint32_t named = streams->has_late ? STREAMS_NAMED / 2 : STREAMS_NAMED;

    script_add(writer->script, (struct op){.kind = OP_MODULE, .number = 0});
    if (!streams->has_late)
        script_add(writer->script, (struct op){.kind = OP_MODULE, .number = 1});
    if (streams->has_spans)
        tell_named(writer, streams, 0, named);
    for (uint32_t i = 0; i < streams->count; i++)
        script_add(writer->script, (struct op){.kind = OP_STREAM,
                                               .number = i + 1,
                                               .value = streams->items[i].start_site});
}

static void tell_late(struct writer *writer, const struct streams *streams)
{
    send_frame(writer);
    script_add(writer->script, (struct op){.kind = OP_MODULE, .number = 1});
    if (streams->has_spans)
        tell_named(writer, streams, STREAMS_NAMED / 2, STREAMS_NAMED);
}

void streams_write(struct mr_test_random *random, const struct streams *streams,
                   const struct cut *cut, struct script *script)
{
    struct writer writer = {.random = random, .cut = cut, .script = script};
    uint32_t left = 0, number = 0, late;

    tell_facts(&writer, streams);
    for (uint32_t i = 0; i < streams->count; i++) {
        writer.ticks[i] = streams->items[i].first_ticks;
        writer.is_over[i] = cut->lanes && cut->lanes[i] != cut->lane;
        left += !writer.is_over[i];
    }
    late = left / 2;
    while (left > 0) {
        if (!cut->in_order)
            number = (uint32_t)below(random, streams->count);
        while (cut->in_order && writer.is_over[number])
            number++;
        if (writer.is_over[number])
            continue;
        write_chunk(&writer, &streams->items[number], number);
        if (writer.is_over[number] && --left == late && streams->has_late)
            tell_late(&writer, streams);
    }
    send_frame(&writer);
    free(writer.words);
}
