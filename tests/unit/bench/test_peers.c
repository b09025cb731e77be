/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What other monitoring systems leave, as they left it once (tests/unit/bench/peers/), is counted as they mean it; and one that
 * is not here is a clear word.
 *
 *     uftrace-thread.hex         0.13: the records of a thread: 3 times a recursion of depth 10, main and two calls of its start
 *     lttng-stop*.txt            2.13: what `lttng stop` says, with events discarded and without
 *     opentelemetry-request.hex  Java agent 2.33.1: the request that Traces.java makes with 4 root calls of depth 3; paths and the
 *                                kernel's version are overwritten
 */
#include "base/compiler.h"
#include "bench/drain.h"
#include "bench/peers_java.h"
#include "bench/rivals.h"
#include "tests/unit/unit_test.h"

#include <limits.h>
#include <math.h>
#include <string.h>

#define BYTES_MAX 8192

/* A file of tests/unit/bench/peers/, as text. */
static void read_text(const char *name, char *text, size_t size)
{
    const char *source = getenv("MR_SOURCE");
    char path[PATH_MAX];
    FILE *file;

    (void)snprintf(path, sizeof(path), "%s/tests/unit/bench/peers/%s",
                   source ? source : ".", name);
    file = fopen(path, "re");
    if (!file)
        fail_msg("%s: cannot be read; MR_SOURCE is the root of the sources", path);
    size = fread(text, 1, size - 1, file);
    text[size] = '\0';
    (void)fclose(file);
}

/* The same of one in hexadecimal, as bytes; how many. */
static size_t read_hex(const char *name, uint8_t bytes[BYTES_MAX])
{
    static char text[3 * BYTES_MAX];
    size_t count = 0;
    unsigned byte;

    read_text(name, text, sizeof(text));
    for (const char *at = text; *at; at += 2) {
        at += strspn(at, "\n");
        if (!*at)
            break;
        assert_true(count < BYTES_MAX);
        assert_int_equal(sscanf(at, "%2x", &byte), 1);
        bytes[count++] = (uint8_t)byte;
    }
    return count;
}

static void leave(const char *folder, const char *name, const uint8_t *bytes, size_t size)
{
    struct mr_error error = MR_ERROR_NONE;
    char path[PATH_MAX];

    (void)snprintf(path, sizeof(path), "%.200s/%s", folder, name);
    assert_int_equal(mr_file_write(path, mr_span_of(bytes, size), &error), MR_OK);
}

static void uftrace_has_a_record_of_16_bytes_per_event(void **state)
{
    struct mr_rivals rivals = {.folder = "/tmp/millrace-peers-XXXXXX"};
    static uint8_t bytes[BYTES_MAX];
    size_t size = read_hex("uftrace-thread.hex", bytes);
    double events = 0, told = 0;

    MR_UNUSED(state);
    assert_non_null(mkdtemp(rivals.folder));
    leave(rivals.folder, "16054.dat", bytes, size);
    leave(rivals.folder, "perf-cpu0.dat", bytes, 0); /* the kernel's, not the program's */
    leave(rivals.folder, "perf-cpu1.dat", bytes, 333);
    leave(rivals.folder, "info", bytes, 100);
    mr_rival_uftrace_end(&rivals, &events, &told);
    assert_float_equal(told, (double)size, 0);
    assert_float_equal(events, 2 * (3 * 10 + 1 + 2), 0);
    mr_rival_uftrace_end(&rivals, &events, &told); /* it was emptied */
    assert_float_equal(events, 0, 0);
    mr_folder_remove(rivals.folder);
}

static void lttng_says_how_many_events_it_discarded(void **state)
{
    char text[1024];

    MR_UNUSED(state);
    read_text("lttng-stop-discarded.txt", text, sizeof(text));
    assert_float_equal(mr_rival_lttng_discarded(text), 4891328, 0);
    read_text("lttng-stop.txt", text, sizeof(text));
    assert_float_equal(mr_rival_lttng_discarded(text), 0, 0);
    assert_float_equal(mr_rival_lttng_discarded(""), 0, 0);
    assert_float_equal(mr_rival_lttng_discarded(" discarded"), 0, 0);
}

static void opentelemetry_sends_a_span_per_call(void **state)
{
    static uint8_t bytes[BYTES_MAX];
    size_t size = read_hex("opentelemetry-request.hex", bytes);

    MR_UNUSED(state);
    assert_int_equal(size, 3750);
    assert_int_equal(mr_drain_count_spans(bytes, size), 4 * 3);
}

static void a_library_that_cannot_be_preloaded_is_a_clear_word(void **state)
{
    static const char said[] =
        "ERROR: ld.so: object 'liblttng-ust-cyg-profile-fast.so.1' from LD_PRELOAD "
        "cannot "
        "be preloaded (cannot open shared object file): ignored.\nmore\n";
    struct mr_command command = {.exit_status = 0};
    struct mr_error error = MR_ERROR_NONE;

    MR_UNUSED(state);
    mr_buffer_init(&command.errors, 4096);
    assert_int_equal(mr_rival_check_loaded(&command, &error), MR_OK);
    mr_buffer_clear(&command.errors);
    assert_int_equal(mr_buffer_append_text(&command.errors, said), MR_OK);
    assert_int_equal(mr_rival_check_loaded(&command, &error), MR_ENOTFOUND);
    assert_string_equal(error.text,
                        "object 'liblttng-ust-cyg-profile-fast.so.1' from LD_PRELOAD "
                        "cannot be preloaded (cannot open shared object file): ignored.");
    mr_buffer_fini(&command.errors);
}

static void without_a_jdk_each_java_peer_is_a_clear_word(void **state)
{
    struct mr_build build = {.folder = "/tmp", .compiler = "cc"};
    struct mr_java java = {.build = &build};
    size_t peers = 0;

    MR_UNUSED(state);
    assert_int_equal(setenv("PATH", "/nowhere", 1), 0);
    for (size_t i = 0; i < mr_java_system_count; i++) {
        struct mr_error error = MR_ERROR_NONE;

        peers += mr_java_systems[i].is_peer;
        assert_int_equal(mr_java_prepare(&java, &mr_java_systems[i], &error),
                         MR_ENOTFOUND);
        assert_non_null(strstr(error.text, "no JDK here"));
    }
    assert_int_equal(peers, 2); /* Kieker, OpenTelemetry */
}

static void without_maven_a_peer_that_was_not_fetched_is_a_clear_word(void **state)
{
    struct mr_build build = {.folder = "/nowhere", .compiler = "cc"};
    struct mr_java java = {.build = &build, .is_compiled = true};

    MR_UNUSED(state);
    assert_int_equal(setenv("PATH", "/nowhere", 1), 0);
    for (size_t i = 0; i < mr_java_system_count; i++) {
        struct mr_error error = MR_ERROR_NONE;
        bool is_peer = mr_java_systems[i].is_peer;

        assert_int_equal(mr_java_prepare(&java, &mr_java_systems[i], &error),
                         is_peer ? MR_ENOTFOUND : MR_OK);
        if (is_peer)
            assert_non_null(strstr(error.text, "no Maven here to fetch it"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(uftrace_has_a_record_of_16_bytes_per_event),
        cmocka_unit_test(lttng_says_how_many_events_it_discarded),
        cmocka_unit_test(opentelemetry_sends_a_span_per_call),
        cmocka_unit_test(a_library_that_cannot_be_preloaded_is_a_clear_word),
        cmocka_unit_test(without_a_jdk_each_java_peer_is_a_clear_word),
        cmocka_unit_test(without_maven_a_peer_that_was_not_fetched_is_a_clear_word),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
