/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The measured program in Java (bench/programs/java/Traces.java), alone and under monitoring systems as their manuals have
 * them for production. Their agents come from Maven Central, once, into the folder of programs. One thread.
 *
 *     struct mr_java java = {.build = &build};
 *     status = mr_java_prepare(&java, &mr_java_systems[i], &error);
 *     status = mr_java_begin(&java, system, &argv, &error);    // starts what listens
 *     ... run argv and the program's own words ...
 *     mr_java_end(&java, system, &events, &bytes);
 *     mr_java_stop(&java);
 *
 * A system: a line in peers_java.c.
 */
#ifndef MR_BENCH_PEERS_JAVA_H
#define MR_BENCH_PEERS_JAVA_H

#include "bench/build.h"
#include "bench/drain.h"

struct mr_java {
    const struct mr_build *build;
    bool is_compiled;
    struct mr_drain drain;
};

struct mr_java_system {
    const char *name, *clock, *policy; /* for the case's name */
    bool is_peer;                      /* else it is the program alone */
    const char *artifact; /* GROUP:NAME:VERSION[:jar:CLASSIFIER] of Maven Central; NULL */
    const char *jar;      /* the file that it is */
    enum mr_drain_protocol protocol;
    /* Adds the words that bring it into the JVM; `port` is the drain's. */
    void (*words)(const struct mr_java *java, uint16_t port, struct mr_words *argv);
};

extern const struct mr_java_system mr_java_systems[];
extern const size_t mr_java_system_count;

/* MR_ENOTFOUND says what is missing: a JDK, Maven, the way to Maven Central. MR_EIO, MR_END. */
enum mr_status mr_java_prepare(struct mr_java *java, const struct mr_java_system *system,
                               struct mr_error *error);
enum mr_status mr_java_begin(struct mr_java *java, const struct mr_java_system *system,
                             struct mr_words *argv, struct mr_words *env,
                             struct mr_error *error);
/* Events (two a call) that came, NAN where the protocol is not looked into; bytes that came. */
void mr_java_end(struct mr_java *java, const struct mr_java_system *system,
                 double *events, double *bytes);
void mr_java_stop(struct mr_java *java); /* allowed where nothing runs */

/* Appends "name": {"version", "words"} of the systems among `used`, a bit for each. */
enum mr_status mr_java_describe(const struct mr_java *java, uint32_t used,
                                struct mr_buffer *out);

#endif
