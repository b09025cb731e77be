/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Traced are main(), listen_to_peers(), where the plan says so work_traced(), and f0 to f19; spans s0 to s9. What runs a plan is not.
 */
#include "program.h"

#include <millrace/probe.h>

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#define QUEUE_MAX 65536u
#define QUESTIONS_MAX 65536u
#define FUNCTIONS 20u
#define SPANS 10u
#define PEERS_MAX 8
#define FLUSH_MS 20000u

struct message {
    uint32_t task, how;
    uint32_t from, question; /* question + 1 where an answer is waited for, else 0 */
    bool is_answer;
    char header[MR_TRACEPARENT_SIZE];
};

struct job {
    struct mr_token token;
    uint32_t task;
    enum how how;
    bool is_message;
    struct message message;
};

struct cursor {
    const struct step *next;
};

static struct plan plan;
static int peers[PEERS_MAX], peer_count, wake;
static pthread_mutex_t sending = PTHREAD_MUTEX_INITIALIZER;

/* Under `mutex`. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static struct job queue[QUEUE_MAX];
static uint32_t head, tail, done, question_count;
static bool is_over; /* nothing more comes */
static struct message answers[QUESTIONS_MAX];

/* Shared by who records something and logs it; alone has it who ends the program, so that the log says what was recorded. */
static pthread_rwlock_t recording;

/* What this thread works for, if that is a message. */
static _Thread_local const struct message *current;

static void run_steps(struct cursor *cursor) MR_NEVER_TRACE;

/* The assembler keeps a call that stands last from becoming a jump. */
#define FUNCTION(number_)                                                                \
    static __attribute__((noinline)) void f##number_(struct cursor *cursor)              \
    {                                                                                    \
        run_steps(cursor);                                                               \
        __asm__ volatile("");                                                            \
    }
FUNCTION(0)
FUNCTION(1)
FUNCTION(2)
FUNCTION(3)
FUNCTION(4)
FUNCTION(5)
FUNCTION(6)
FUNCTION(7)
FUNCTION(8)
FUNCTION(9)
FUNCTION(10)
FUNCTION(11)
FUNCTION(12)
FUNCTION(13)
FUNCTION(14)
FUNCTION(15)
FUNCTION(16)
FUNCTION(17)
FUNCTION(18)
FUNCTION(19)

static void (*const functions[FUNCTIONS])(struct cursor *) = {
    f0,  f1,  f2,  f3,  f4,  f5,  f6,  f7,  f8,  f9,
    f10, f11, f12, f13, f14, f15, f16, f17, f18, f19};

static struct mr_span_site spans[SPANS] = {
    MR_SPAN_SITE_INIT("s0", 0), MR_SPAN_SITE_INIT("s1", 0), MR_SPAN_SITE_INIT("s2", 0),
    MR_SPAN_SITE_INIT("s3", 0), MR_SPAN_SITE_INIT("s4", 0), MR_SPAN_SITE_INIT("s5", 0),
    MR_SPAN_SITE_INIT("s6", 0), MR_SPAN_SITE_INIT("s7", 0), MR_SPAN_SITE_INIT("s8", 0),
    MR_SPAN_SITE_INIT("s9", 0)};

MR_NEVER_TRACE static void begin_record(void)
{
    pthread_rwlock_rdlock(&recording);
}

MR_NEVER_TRACE static void end_record(void)
{
    pthread_rwlock_unlock(&recording);
}

MR_NEVER_TRACE static void run_task(uint32_t task)
{
    struct cursor cursor = {plan.tasks[task]};

    if (!cursor.next) {
        fprintf(stderr, "no task %u\n", task);
        abort();
    }
    begin_record();
    run_steps(&cursor);
    end_record();
}

MR_NEVER_TRACE static void end_all(void)
{
    pthread_mutex_lock(&mutex);
    is_over = true;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&mutex);
    eventfd_write(wake, 1);
}

/* In the middle of everything, when all that was recorded has been sent. */
MR_NEVER_TRACE static void die(void)
{
    pthread_rwlock_wrlock(&recording);
    fflush(NULL);
    mr_probe_flush(FLUSH_MS);
    kill(getpid(), SIGKILL);
}

/* The roots count as one. */
MR_NEVER_TRACE static void task_is_done(void)
{
    bool is_last;

    pthread_mutex_lock(&mutex);
    is_last = ++done == plan.expected + 1;
    pthread_mutex_unlock(&mutex);
    if (is_last)
        end_all();
}

MR_NEVER_TRACE static void push(const struct job *job)
{
    pthread_mutex_lock(&mutex);
    queue[tail++ % QUEUE_MAX] = *job;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&mutex);
}

/* False: the queue is empty, and `waits` is false or nothing more comes. */
MR_NEVER_TRACE static bool pop(struct job *job, bool waits)
{
    bool is_there;

    pthread_mutex_lock(&mutex);
    while (waits && head == tail && !is_over)
        pthread_cond_wait(&changed, &mutex);
    is_there = head != tail;
    if (is_there)
        *job = queue[head++ % QUEUE_MAX];
    pthread_mutex_unlock(&mutex);
    return is_there;
}

/* What came without a header. */
MR_NEVER_TRACE static void begin(void)
{
    begin_record();
    log_line("begin");
    mr_receive(NULL);
    end_record();
}

MR_NEVER_TRACE static void receive(const struct message *message)
{
    struct mr_traceparent parent;
    int64_t before;
    bool is_read;

    if (!message->header[0]) {
        begin();
        return;
    }
    begin_record();
    is_read =
        mr_traceparent_parse(message->header, strlen(message->header), &parent) == 0;
    before = log_now_ns();
    mr_receive(&parent);
    log_line("receive %s %lld %lld", is_read ? message->header : "unreadable",
             (long long)before, (long long)log_now_ns());
    end_record();
}

MR_NEVER_TRACE static void detach(void)
{
    begin_record();
    mr_detach();
    log_line("detach %lld", (long long)log_now_ns());
    end_record();
}

MR_NEVER_TRACE static void run_message(const struct message *message)
{
    const struct message *before = current;

    current = message;
    if (message->how != HOW_INSIDE && message->how != HOW_NEVER)
        receive(message);
    run_task(message->task);
    if (message->how != HOW_UNDETACHED)
        detach();
    current = before;
    task_is_done();
}

MR_NEVER_TRACE static void attach(const struct job *job)
{
    int64_t before;

    begin_record();
    before = log_now_ns();
    mr_attach(job->token);
    log_line("attach %llu %lld %lld", (unsigned long long)job->token.id,
             (long long)before, (long long)log_now_ns());
    end_record();
}

MR_NEVER_TRACE static void run_job(const struct job *job)
{
    const struct message *before = current;

    if (job->is_message) {
        run_message(&job->message);
        return;
    }
    current = NULL;
    if (job->how != HOW_UNATTACHED)
        attach(job);
    run_task(job->task);
    if (job->how != HOW_UNATTACHED && job->how != HOW_UNDETACHED)
        detach();
    if (job->how == HOW_DETACHED_TWICE)
        detach();
    current = before;
    task_is_done();
}

/* Lost where the peer has died. */
MR_NEVER_TRACE static void write_message(uint32_t peer, const struct message *message)
{
    pthread_mutex_lock(&sending);
    if (send(peers[peer], message, sizeof(*message), MSG_NOSIGNAL) != sizeof(*message) &&
        errno != EPIPE && errno != ECONNRESET)
        fprintf(stderr, "a message to program %u is lost: %s\n", peer, strerror(errno));
    pthread_mutex_unlock(&sending);
}

MR_NEVER_TRACE static void make_header(char *header)
{
    struct mr_traceparent parent;
    int64_t before;

    begin_record();
    before = log_now_ns();
    if (mr_send(&parent)) {
        mr_traceparent_format(&parent, header);
        log_line("send %s %lld %lld", header, (long long)before, (long long)log_now_ns());
    }
    end_record();
}

/* What becomes of the header on its way. */
MR_NEVER_TRACE static void spoil(struct message *message)
{
    if (message->how == HOW_UNREADABLE)
        message->header[3] = 'x';
    else if (message->how == HOW_HEADLESS)
        message->header[0] = 0;
    else if (message->how == HOW_ZERO)
        memset(message->header + 3, '0', 32);
}

MR_NEVER_TRACE static void send_message(const struct step *step, uint32_t question)
{
    struct message message = {
        .task = step->task, .how = step->how, .from = plan.self, .question = question};

    make_header(message.header);
    spoil(&message);
    if (step->how == HOW_DROPPED)
        return;
    write_message(step->target, &message);
    if (step->how == HOW_TWICE)
        write_message(step->target, &message);
}

MR_NEVER_TRACE static void ask(const struct step *step)
{
    struct message answer;
    uint32_t question;

    pthread_mutex_lock(&mutex);
    question = question_count++;
    pthread_mutex_unlock(&mutex);
    send_message(step, question + 1);
    pthread_mutex_lock(&mutex);
    while (!answers[question].is_answer)
        pthread_cond_wait(&changed, &mutex);
    answer = answers[question];
    pthread_mutex_unlock(&mutex);
    if (answer.header[0])
        receive(&answer);
}

MR_NEVER_TRACE static void answer(bool has_header)
{
    struct message message = {.is_answer = true};

    if (!current || !current->question)
        return;
    message.question = current->question;
    if (has_header)
        make_header(message.header);
    write_message(current->from, &message);
}

MR_NEVER_TRACE static struct mr_token capture(void)
{
    struct mr_token token;
    int64_t before;

    begin_record();
    before = log_now_ns();
    token = mr_capture();
    log_line("capture %llu %lld %lld", (unsigned long long)token.id, (long long)before,
             (long long)log_now_ns());
    end_record();
    return token;
}

MR_NEVER_TRACE static void hand_over(const struct step *step)
{
    struct job job = {.token = capture(), .task = step->task, .how = step->how};

    if (step->how == HOW_DROPPED)
        return;
    push(&job);
    if (step->how == HOW_TWICE)
        push(&job);
}

MR_NEVER_TRACE static void steal(void)
{
    struct job job;

    if (pop(&job, false))
        run_job(&job);
}

MR_NEVER_TRACE static void call(uint32_t number, struct cursor *cursor)
{
    begin_record();
    log_line("enter f%u %lld", number, (long long)log_now_ns());
    functions[number](cursor);
    log_line("exit f%u %lld", number, (long long)log_now_ns());
    end_record();
}

MR_NEVER_TRACE static void span(uint32_t number, struct cursor *cursor)
{
    begin_record();
    log_line("enter s%u %lld", number, (long long)log_now_ns());
    mr_span_enter(&spans[number]);
    run_steps(cursor);
    mr_span_exit(&spans[number]);
    log_line("exit s%u %lld", number, (long long)log_now_ns());
    end_record();
}

MR_NEVER_TRACE static void fail(void)
{
    begin_record();
    mr_status_failed();
    log_line("failed");
    end_record();
}

MR_NEVER_TRACE static void run_step(const struct step *step, struct cursor *cursor)
{
    switch (step->verb) {
    case VERB_CALL:
        call(step->target, cursor);
        break;
    case VERB_SPAN:
        span(step->target, cursor);
        break;
    case VERB_FAIL:
        fail();
        break;
    case VERB_SLEEP:
        usleep(step->target);
        break;
    case VERB_HAND:
        hand_over(step);
        break;
    case VERB_SEND:
        send_message(step, 0);
        break;
    case VERB_ASK:
        ask(step);
        break;
    case VERB_ANSWER:
        answer(step->target);
        break;
    case VERB_RECEIVE:
        if (current)
            receive(current);
        break;
    case VERB_BEGIN:
        begin();
        break;
    case VERB_DETACH:
        detach();
        break;
    case VERB_STEAL:
        steal();
        break;
    case VERB_END:
    case VERB_DONE:
    case VERB_COUNT:
        break;
    }
}

/* To the end of the innermost call or span, or of the task. Between its steps nothing is recorded. */
static void run_steps(struct cursor *cursor)
{
    end_record();
    while (cursor->next->verb != VERB_DONE) {
        const struct step *step = cursor->next++;

        if (step->verb == VERB_END)
            break;
        run_step(step, cursor);
    }
    begin_record();
}

MR_NEVER_TRACE static void work(void)
{
    struct job job;

    while (pop(&job, true))
        run_job(&job);
}

static void *work_traced(void *unused)
{
    (void)unused;
    log_line("outer-enter work_traced");
    work();
    log_line("outer-exit");
    log_end();
    return NULL;
}

MR_NEVER_TRACE static void *work_plain(void *unused)
{
    (void)unused;
    work();
    log_end();
    return NULL;
}

MR_NEVER_TRACE static void take_answer(const struct message *message)
{
    pthread_mutex_lock(&mutex);
    answers[message->question - 1] = *message;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&mutex);
}

/* False: the peer has ended. */
MR_NEVER_TRACE static bool read_message(int peer)
{
    struct job job = {.is_message = true};

    if (recv(peer, &job.message, sizeof(job.message), MSG_WAITALL) != sizeof(job.message))
        return false;
    if (job.message.is_answer)
        take_answer(&job.message);
    else if (plan.hands_on)
        push(&job);
    else
        run_message(&job.message);
    return true;
}

/* Of the peers, then that all is done, then the program's input. */
MR_NEVER_TRACE static void read_peers(void)
{
    struct pollfd polled[PEERS_MAX + 2];

    for (int i = 0; i < peer_count; i++)
        polled[i] = (struct pollfd){.fd = peers[i], .events = POLLIN};
    polled[peer_count] = (struct pollfd){.fd = wake, .events = POLLIN};
    polled[peer_count + 1] = (struct pollfd){.fd = STDIN_FILENO, .events = POLLIN};
    for (;;) {
        poll(polled, (nfds_t)peer_count + 2, -1);
        for (int i = 0; i < peer_count; i++)
            if (polled[i].revents && !read_message(polled[i].fd))
                polled[i].fd = -1;
        if (polled[peer_count].revents)
            return;
        if (polled[peer_count + 1].revents)
            die();
    }
}

static void *listen_to_peers(void *unused)
{
    (void)unused;
    log_line("outer-enter listen_to_peers");
    read_peers();
    log_line("outer-exit");
    log_end();
    return NULL;
}

/* Who ends the program comes before who records on. */
MR_NEVER_TRACE static void init_recording(void)
{
    pthread_rwlockattr_t kind;

    pthread_rwlockattr_init(&kind);
    pthread_rwlockattr_setkind_np(&kind, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
    pthread_rwlock_init(&recording, &kind);
    pthread_rwlockattr_destroy(&kind);
}

MR_NEVER_TRACE static void set_up(char **arguments)
{
    plan_read(arguments[1], &plan);
    log_begin(arguments[2]);
    init_recording();
    for (char *word = strtok(arguments[3], ","); word; word = strtok(NULL, ","))
        peers[peer_count++] = strcmp(word, "-") == 0 ? -1 : atoi(word);
    wake = eventfd(0, 0);
}

MR_NEVER_TRACE static void run_roots(void)
{
    for (uint32_t i = 0; i < plan.root_count; i++) {
        run_task(plan.roots[i]);
        if (plan.pause_us)
            usleep(plan.pause_us);
    }
    task_is_done();
}

/* On its standard output: how many events were lost. */
MR_NEVER_TRACE static void print_lost(void)
{
    struct mr_probe_counts counts;

    mr_probe_flush(FLUSH_MS);
    if (mr_probe_stats(&counts) == 0)
        printf("lost %llu\n",
               (unsigned long long)(counts.lost_ring_full + counts.lost_block_timeout +
                                    counts.lost_budget + counts.lost_nested +
                                    counts.lost_exit));
}

int main(int argc, char **argv)
{
    pthread_t listener, threads[THREADS_MAX];

    if (argc != 4)
        return 2;
    set_up(argv);
    log_line("outer-enter main");
    pthread_create(&listener, NULL, listen_to_peers, NULL);
    for (uint32_t i = 0; i < plan.threads; i++)
        pthread_create(&threads[i], NULL, plan.is_pool_traced ? work_traced : work_plain,
                       NULL);
    run_roots();
    pthread_join(listener, NULL);
    for (uint32_t i = 0; i < plan.threads; i++)
        pthread_join(threads[i], NULL);
    log_line("outer-exit");
    log_end();
    print_lost();
    return 0;
}
