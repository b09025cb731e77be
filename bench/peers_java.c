/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each as its manual has it for production:
 *
 *     kieker         2.0: its AspectJ agent, operation execution records, single socket TCP writer; a full queue blocks
 *     opentelemetry  its Java agent, spans of named methods, batch processor, OTLP over HTTP; a full queue drops. Metrics
 *                    and logs, which nobody else here sends, are off
 */
#include "bench/peers_java.h"

#include "base/clock.h"
#include "bench/machine.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FETCH_NS (300 * MR_SECOND_NS)
#define COMPILE_NS (120 * MR_SECOND_NS)
#define SOURCE "bench/programs/java/Traces.java"
#define FOLDER "java" /* in the build's folder: classes, agents, settings */
#define EVENTS_PER_SPAN 2

/* FOLDER/NAME, absolute or below where the build's folder is told. */
static const char *path_of(const struct mr_java *java, const char *name,
                           char path[PATH_MAX])
{
    char relative[PATH_MAX];

    (void)snprintf(relative, sizeof(relative), "%.*s/" FOLDER "/%.200s", PATH_MAX - 300,
                   java->build->folder, name);
    if (!realpath(relative, path))
        (void)snprintf(path, PATH_MAX, "%s", relative);
    return path;
}

static void add_path(const struct mr_java *java, const char *before, const char *name,
                     struct mr_words *argv)
{
    char path[PATH_MAX];

    mr_words_add(argv, "%s%s", before, path_of(java, name, path));
}

static void kieker_words(const struct mr_java *java, uint16_t port, struct mr_words *argv)
{
    add_path(java, "-javaagent:", "kieker-2.0.2-aspectj.jar", argv);
    add_path(java, "-Dorg.aspectj.weaver.loadtime.configuration=file:", "aop.xml", argv);
    mr_words_split(argv, "-Dkieker.monitoring.skipDefaultAOPConfiguration=true "
                         "-Dkieker.monitoring.writer=kieker.monitoring.writer.tcp."
                         "SingleSocketTcpWriter "
                         "-Dkieker.monitoring.writer.tcp.SingleSocketTcpWriter.hostname="
                         "127.0.0.1");
    mr_words_add(argv, "-Dkieker.monitoring.writer.tcp.SingleSocketTcpWriter.port=%u",
                 (unsigned)port);
}

static void opentelemetry_words(const struct mr_java *java, uint16_t port,
                                struct mr_words *argv)
{
    add_path(java, "-javaagent:", "opentelemetry-javaagent-2.33.1.jar", argv);
    mr_words_split(argv, "-Dotel.instrumentation.methods.include=Monitored[call] "
                         "-Dotel.service.name=traces -Dotel.traces.exporter=otlp "
                         "-Dotel.exporter.otlp.protocol=http/protobuf "
                         "-Dotel.metrics.exporter=none -Dotel.logs.exporter=none");
    mr_words_add(argv, "-Dotel.exporter.otlp.endpoint=http://127.0.0.1:%u",
                 (unsigned)port);
    /* An installation may send HTTP through a proxy, which knows no loopback of ours. */
    mr_words_split(argv, "-Djava.net.useSystemProxies=false -Dhttp.proxyHost=");
}

const struct mr_java_system mr_java_systems[] = {
    {.name = "java", .clock = "none", .policy = "none"},
    {.name = "kieker",
     .clock = "monotonic",
     .policy = "block",
     .is_peer = true,
     .artifact = "net.kieker-monitoring:kieker:2.0.2:jar:aspectj",
     .jar = "kieker-2.0.2-aspectj.jar",
     .protocol = MR_DRAIN_BYTES,
     .words = kieker_words},
    {.name = "opentelemetry",
     .clock = "monotonic",
     .policy = "drop",
     .is_peer = true,
     .artifact = "io.opentelemetry.javaagent:opentelemetry-javaagent:2.33.1",
     .jar = "opentelemetry-javaagent-2.33.1.jar",
     .protocol = MR_DRAIN_OTLP,
     .words = opentelemetry_words},
};
const size_t mr_java_system_count = MR_ARRAY_COUNT(mr_java_systems);

/* What AspectJ weaves Kieker's probe into. */
static const char aop[] =
    "<!DOCTYPE aspectj PUBLIC \"-//AspectJ//DTD//EN\" "
    "\"http://www.aspectj.org/dtd/aspectj_1_5_0.dtd\">\n"
    "<aspectj>\n"
    "  <weaver><include within=\"Monitored\"/></weaver>\n"
    "  <aspects><aspect name=\"kieker.monitoring.probe.aspectj.operationExecution."
    "OperationExecutionAspectFull\"/></aspects>\n"
    "</aspectj>\n";

static enum mr_status compile(struct mr_java *java, struct mr_error *error)
{
    struct mr_words line = {0};
    char path[PATH_MAX], version[64];
    enum mr_status status;

    mr_build_version(java->build, "javac", version, sizeof(version));
    if (!*version)
        return mr_error_set(error, MR_ENOTFOUND,
                            "no JDK here (Debian: scripts/install-deps.sh bench)");
    status = mr_folder_make(mr_build_path(java->build, FOLDER, path), error);
    if (status == MR_OK)
        status = mr_file_write(path_of(java, "aop.xml", path),
                               mr_span_of((const uint8_t *)aop, sizeof(aop) - 1), error);
    mr_words_split(&line, "javac -d " FOLDER " source/" SOURCE);
    if (status == MR_OK)
        status = mr_build_run(java->build, &line, COMPILE_NS, error);
    mr_words_fini(&line);
    java->is_compiled = status == MR_OK;
    return status;
}

static enum mr_status fetch(const struct mr_java *java,
                            const struct mr_java_system *system, struct mr_error *error)
{
    struct mr_words line = {0};
    char path[PATH_MAX], version[64];
    struct mr_error why = MR_ERROR_NONE;
    enum mr_status status;

    if (access(path_of(java, system->jar, path), R_OK) == 0)
        return MR_OK;
    mr_build_version(java->build, "mvn", version, sizeof(version));
    if (!*version)
        return mr_error_set(error, MR_ENOTFOUND,
                            "no Maven here to fetch it (Debian: scripts/install-deps.sh "
                            "bench)");
    (void)fprintf(stderr, "fetching %s ...\n", system->artifact);
    mr_words_split(&line, "mvn -B -q dependency:copy");
    mr_words_add(&line, "-Dartifact=%s", system->artifact);
    add_path(java, "-DoutputDirectory=", "", &line);
    status = mr_build_run(java->build, &line, FETCH_NS, &why);
    mr_words_fini(&line);
    if (status == MR_END)
        return status;
    if (status != MR_OK || access(path_of(java, system->jar, path), R_OK) != 0)
        return mr_error_set(error, MR_ENOTFOUND,
                            "%s cannot be fetched from Maven Central: %.120s",
                            system->artifact, why.text);
    return MR_OK;
}

enum mr_status mr_java_prepare(struct mr_java *java, const struct mr_java_system *system,
                               struct mr_error *error)
{
    enum mr_status status = java->is_compiled ? MR_OK : compile(java, error);

    if (status == MR_OK && system->artifact)
        status = fetch(java, system, error);
    return status;
}

enum mr_status mr_java_begin(struct mr_java *java, const struct mr_java_system *system,
                             struct mr_words *argv, struct mr_words *env,
                             struct mr_error *error)
{
    enum mr_status status = MR_OK;

    /* The same JVM everywhere. Maven, above, keeps its own: it may need a proxy. */
    mr_words_split(env, "JAVA_TOOL_OPTIONS= JDK_JAVA_OPTIONS= _JAVA_OPTIONS=");
    if (system->protocol != MR_DRAIN_NOTHING)
        status = mr_drain_start(&java->drain, system->protocol, error);
    mr_words_split(argv, "java -Xms1G -Xmx2G"); /* as MooBench has it */
    if (status == MR_OK && system->words)
        system->words(java, java->drain.port, argv);
    mr_words_add(argv, "-cp");
    add_path(java, "", "", argv);
    mr_words_add(argv, "Traces");
    return status;
}

void mr_java_end(struct mr_java *java, const struct mr_java_system *system,
                 double *events, double *bytes)
{
    if (system->protocol == MR_DRAIN_NOTHING)
        return;
    mr_drain_stop(&java->drain);
    *bytes = (double)java->drain.bytes;
    if (system->protocol == MR_DRAIN_OTLP)
        *events = (double)(java->drain.spans * EVENTS_PER_SPAN);
}

void mr_java_stop(struct mr_java *java)
{
    mr_drain_stop(&java->drain);
}

static enum mr_status describe(const struct mr_java *java,
                               const struct mr_java_system *system, struct mr_buffer *out)
{
    struct mr_words words = {0};
    char line[2048];
    enum mr_status status;

    if (system->words)
        system->words(java, 0, &words);
    status = mr_buffer_append_format(out, "\"%s\": {\"artifact\": ", system->name);
    if (status == MR_OK)
        status = mr_bench_json_text(out, system->artifact);
    if (status == MR_OK)
        status = mr_buffer_append_text(out, ", \"words\": ");
    if (status == MR_OK)
        status = mr_bench_json_text(out, mr_words_join(&words, line, sizeof(line)));
    mr_words_fini(&words);
    return status == MR_OK ? mr_buffer_append_text(out, "}") : status;
}

enum mr_status mr_java_describe(const struct mr_java *java, uint32_t used,
                                struct mr_buffer *out)
{
    enum mr_status status = MR_OK;
    char version[128];

    if (used == 0)
        return MR_OK;
    mr_build_version(java->build, "java", version, sizeof(version));
    status = mr_buffer_append_text(out, "\"jvm\": ");
    if (status == MR_OK)
        status = mr_bench_json_text(out, version);
    for (size_t i = 0; i < mr_java_system_count && status == MR_OK; i++) {
        if (!(used >> i & 1))
            continue;
        status = mr_buffer_append_text(out, ", ");
        if (status == MR_OK)
            status = describe(java, &mr_java_systems[i], out);
    }
    return status;
}
