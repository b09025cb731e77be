/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libmicrohttpd is driven from outside (its epoll descriptor is polled here), so that
 * the thread is ours and can register with liburcu. All state belongs to that thread;
 * the only hand-over is the stop eventfd.
 */
#include "master/http.h"

#include "base/assert.h"
#include "base/clock.h"
#include "base/compiler.h"
#include "base/log.h"
#include "master/http_body.h"
#include "master/http_clients.h"
#include "master/page.h"

#include <errno.h>
#include <microhttpd.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define POLL_MS_MAX 1000

struct mr_http {
    struct mr_api *api;
    struct mr_http_clients clients;
    struct MHD_Daemon *daemon;
    int epoll_fd, stop_fd;
    pthread_t thread;
};

/* Nothing from elsewhere, no inline script: what a function is called is not trusted. */
static const char csp[] =
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const struct mr_page_file *mr_page_find(const char *path)
{
    for (size_t i = 0; i < mr_page_file_count; i++)
        if (strcmp(mr_page_files[i].path, path) == 0)
            return &mr_page_files[i];
    return NULL;
}

static enum MHD_Result send_response(struct MHD_Connection *connection, unsigned status,
                                     const char *type, struct MHD_Response *response)
{
    if (!response)
        return MHD_NO;
    MHD_add_response_header(response, "Content-Type", type);
    MHD_add_response_header(response, "Content-Security-Policy", csp);
    MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
    MHD_add_response_header(response, "Referrer-Policy", "no-referrer");
    MHD_add_response_header(response, "Cache-Control", "no-store");
    enum MHD_Result result = MHD_queue_response(connection, status, response);
    MHD_destroy_response(response);
    return result;
}

static enum MHD_Result send_reply(struct MHD_Connection *connection,
                                  const struct mr_api_reply *reply)
{
    struct MHD_Response *response =
        MHD_create_response_from_buffer(reply->size, reply->body, MHD_RESPMEM_MUST_FREE);

    if (!response)
        free(reply->body);
    return send_response(connection, reply->status, reply->type, response);
}

static enum MHD_Result send_error(struct MHD_Connection *connection, unsigned status,
                                  const char *text)
{
    struct mr_api_reply reply;

    if (mr_api_error(status, text, &reply) != MR_OK)
        return MHD_NO;
    return send_reply(connection, &reply);
}

/* Of a method that the path does not serve. */
static enum MHD_Result refuse_method(struct MHD_Connection *connection, const char *path)
{
    struct MHD_Response *response;
    struct mr_api_reply reply;
    const char *allowed = mr_api_takes("DELETE", path) ? "DELETE"
                          : mr_api_takes("POST", path) ? "GET, HEAD, POST"
                                                       : "GET, HEAD";
    char text[64];

    (void)snprintf(text, sizeof(text), "only these are served here: %s", allowed);
    if (mr_api_error(405, text, &reply) != MR_OK)
        return MHD_NO;
    response =
        MHD_create_response_from_buffer(reply.size, reply.body, MHD_RESPMEM_MUST_FREE);
    if (!response) {
        free(reply.body);
        return MHD_NO;
    }
    MHD_add_response_header(response, "Allow", allowed);
    return send_response(connection, 405, reply.type, response);
}

static enum MHD_Result send_page(struct MHD_Connection *connection,
                                 const struct mr_page_file *file)
{
    return send_response(connection, 200, file->type,
                         MHD_create_response_from_buffer(file->size,
                                                         (void *)(uintptr_t)file->data,
                                                         MHD_RESPMEM_PERSISTENT));
}

struct params {
    struct mr_api_param items[MR_API_PARAMS_MAX];
    size_t count;
    const char *fault; /* NULL: none */
};

static enum MHD_Result take_param(void *context, enum MHD_ValueKind kind,
                                  const char *name, size_t name_size, const char *value,
                                  size_t value_size)
{
    struct params *params = context;

    MR_UNUSED(kind);
    if (params->count == MR_API_PARAMS_MAX) {
        params->fault = "too many parameters";
        return MHD_NO;
    }
    /* What stands behind it would be left out without a word. */
    if (strlen(name) != name_size || (value && strlen(value) != value_size)) {
        params->fault = "a parameter has a byte that is 0";
        return MHD_NO;
    }
    params->items[params->count++] = (struct mr_api_param){name, value ? value : ""};
    return MHD_YES;
}

static enum MHD_Result answer_api(struct MHD_Connection *connection,
                                  const struct mr_http *http, const char *path)
{
    struct params params = {.count = 0};
    struct mr_api_reply reply;

    MHD_get_connection_values_n(connection, MHD_GET_ARGUMENT_KIND, take_param, &params);
    if (params.fault)
        return send_error(connection, 400, params.fault);
    if (mr_api_answer(http->api, path, params.items, params.count, &reply) != MR_OK)
        return send_error(connection, 503, "out of memory");
    return send_reply(connection, &reply);
}

static int seen_get; /* a request's state, for one without a body */

static bool is_json(struct MHD_Connection *connection)
{
    static const char wanted[] = "application/json";
    const char *type =
        MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Content-Type");

    return type && strncasecmp(type, wanted, strlen(wanted)) == 0;
}

/*
 * A request that changes something, once all of it is here. A body must say that it is JSON: what a page from elsewhere
 * makes a browser send without asking us first cannot say so.
 */
static enum MHD_Result answer_change(struct MHD_Connection *connection,
                                     const struct mr_http *http, const char *path,
                                     const char *method, const struct mr_http_body *body)
{
    struct mr_api_reply reply;

    if (body->is_too_large)
        return send_error(connection, 413, "the body is too large: at most 4096 bytes");
    if (strcmp(method, "POST") == 0 && !is_json(connection))
        return send_error(connection, 415,
                          "the body must be JSON: Content-Type: application/json");
    if (mr_api_change(http->api, path, method, mr_span_of(body->data, body->size),
                      &reply) != MR_OK)
        return send_error(connection, 503, "out of memory");
    return send_reply(connection, &reply);
}

/* Called when its head has come, for each piece of its body, and when all of it is here. */
static enum MHD_Result on_change(struct MHD_Connection *connection,
                                 const struct mr_http *http, const char *path,
                                 const char *method, const char *upload,
                                 size_t *upload_size, void **state)
{
    if (!*state) {
        *state = mr_http_body_new();
        return *state ? MHD_YES : MHD_NO;
    }
    if (*upload_size == 0)
        return answer_change(connection, http, path, method, *state);
    mr_http_body_take(*state, upload, *upload_size);
    *upload_size = 0;
    return MHD_YES;
}

static struct mr_http_client *client_of(struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

    return info ? info->socket_context : NULL;
}

static void on_connection(void *context, struct MHD_Connection *connection, void **client,
                          enum MHD_ConnectionNotificationCode what)
{
    struct mr_http *http = context;

    if (what == MHD_CONNECTION_NOTIFY_CLOSED) {
        mr_http_clients_remove(&http->clients, *client);
        *client = NULL;
        return;
    }
    *client = mr_http_clients_add(
        &http->clients,
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)
            ->connect_fd);
    http->api->http_gave_way = http->clients.gave_way;
}

static enum MHD_Result on_request(void *context, struct MHD_Connection *connection,
                                  const char *path, const char *method,
                                  const char *version, const char *upload,
                                  size_t *upload_size, void **state)
{
    struct mr_http *http = context;
    bool is_get = strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0;

    MR_UNUSED(version);
    if (!is_get && mr_api_takes(method, path))
        return on_change(connection, http, path, method, upload, upload_size, state);
    if (!*state && is_get) { /* the first call comes before the rest of the request */
        *state = &seen_get;
        return MHD_YES;
    }
    if (!is_get)
        return refuse_method(connection, path);
    if (*upload_size)
        return MHD_NO; /* a body on a GET: close */
    mr_http_clients_moved(&http->clients, client_of(connection));
    const struct mr_page_file *file = mr_page_find(path);
    return file ? send_page(connection, file) : answer_api(connection, http, path);
}

static void on_completed(void *context, struct MHD_Connection *connection, void **state,
                         enum MHD_RequestTerminationCode how)
{
    struct mr_http *http = context;

    MR_UNUSED(how);
    mr_http_clients_moved(&http->clients, client_of(connection));
    if (*state != &seen_get)
        free(*state);
    *state = NULL;
}

static int wait_ms(const struct mr_http *http)
{
    MHD_UNSIGNED_LONG_LONG timeout;

    if (MHD_get_timeout(http->daemon, &timeout) != MHD_YES || timeout > POLL_MS_MAX)
        return POLL_MS_MAX;
    return (int)timeout;
}

static void *run(void *context)
{
    struct mr_http *http = context;
    struct pollfd fds[] = {{.fd = http->epoll_fd, .events = POLLIN},
                           {.fd = http->stop_fd, .events = POLLIN}};

    mr_model_thread_enter();
    while (!(fds[1].revents & POLLIN)) {
        if (poll(fds, 2, wait_ms(http)) < 0 && errno != EINTR)
            mr_log_error("http: poll: %s", strerror(errno));
        MHD_run(http->daemon);
    }
    mr_model_thread_leave();
    return NULL;
}

static void log_line(void *context, const char *format, va_list arguments)
{
    static struct mr_log_limit limit = MR_LOG_LIMIT(MR_SECOND_NS);
    char text[200];

    MR_UNUSED(context);
    (void)vsnprintf(text, sizeof(text), format, arguments);
    text[strcspn(text, "\n")] = '\0';
    mr_log_limited(&limit, MR_LOG_DEBUG, "http: %s", text);
}

static enum mr_status open_daemon(struct mr_http *http, int listen_fd,
                                  struct mr_error *error)
{
    http->daemon = MHD_start_daemon(
        MHD_USE_EPOLL | MHD_USE_ERROR_LOG, 0, NULL, NULL, on_request, http,
        MHD_OPTION_EXTERNAL_LOGGER, log_line, NULL, MHD_OPTION_NOTIFY_COMPLETED,
        on_completed, http, MHD_OPTION_NOTIFY_CONNECTION, on_connection, http,
        MHD_OPTION_LISTEN_SOCKET, listen_fd, MHD_OPTION_CONNECTION_LIMIT,
        MR_HTTP_CONNECTIONS_MAX + MR_HTTP_CONNECTIONS_SPARE,
        MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)MR_HTTP_IDLE_S,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, MR_HTTP_REQUEST_BYTES,
        MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_END);
    if (!http->daemon) {
        close(listen_fd);
        return mr_error_set(error, MR_EIO, "http: the server could not be started");
    }
    const union MHD_DaemonInfo *info =
        MHD_get_daemon_info(http->daemon, MHD_DAEMON_INFO_EPOLL_FD);
    if (!info || info->epoll_fd < 0)
        return mr_error_set(error, MR_EIO, "http: no epoll in libmicrohttpd");
    http->epoll_fd = info->epoll_fd;
    return MR_OK;
}

enum mr_status mr_http_start(int listen_fd, struct mr_api *api, struct mr_http **out,
                             struct mr_error *error)
{
    struct mr_http *http = calloc(1, sizeof(*http));

    if (!http) {
        close(listen_fd);
        return mr_error_set(error, MR_ENOMEM, "http: out of memory");
    }
    http->api = api;
    http->clients.max = MR_HTTP_CONNECTIONS_MAX;
    http->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    enum mr_status status = open_daemon(http, listen_fd, error);
    if (status == MR_OK && http->stop_fd < 0)
        status = mr_error_set_errno(error, MR_EIO, errno, "http: eventfd");
    int failure = status == MR_OK ? pthread_create(&http->thread, NULL, run, http) : 0;
    if (failure)
        status = mr_error_set_errno(error, MR_ENOMEM, failure, "http: thread");
    if (status != MR_OK) {
        if (http->daemon)
            MHD_stop_daemon(http->daemon);
        close(http->stop_fd);
        free(http);
        return status;
    }
    *out = http;
    return MR_OK;
}

void mr_http_stop(struct mr_http *http)
{
    uint64_t one = 1;

    if (!http)
        return;
    if (write(http->stop_fd, &one, sizeof(one)) < 0)
        MR_ASSERT(errno == EAGAIN);
    pthread_join(http->thread, NULL);
    MHD_stop_daemon(http->daemon);
    close(http->stop_fd);
    free(http);
}
