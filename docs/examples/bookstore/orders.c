/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Customers and their orders. Connections only put jobs into a queue; two clerks (threads) work on them.
 *
 *     GREET customer                  OK name rank | NO SUCH CUSTOMER
 *     ORDER customer price            OK number to-pay | NO SUCH CUSTOMER | NO CREDIT
 *     CANCEL customer price           OK
 *     QUIT                            OK
 */
#include <err.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server.h"

#define CLERKS 2
#define QUEUE 16

struct customer {
    const char *name;
    int rank;   /* 0 new, 1 regular, 2 friend of the house */
    int credit; /* under ledger_lock */
};

static struct customer customers[] = {
    {"ada", 2, 20000}, {"grace", 1, 20000}, {"edsger", 1, 20000}, {"barbara", 0, 4000}};
#define CUSTOMER_COUNT (sizeof customers / sizeof customers[0])

static pthread_mutex_t ledger_lock = PTHREAD_MUTEX_INITIALIZER;
static int last_order; /* under ledger_lock */

/* A request on its way from a connection to a clerk and back. */
struct job {
    char *line;
    char reply[WIRE_LINE];
    sem_t done;
};

static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct job *jobs[QUEUE];
    unsigned count;
    bool closed;
} queue = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static void push_job(struct job *job)
{
    pthread_mutex_lock(&queue.lock);
    while (queue.count == QUEUE)
        pthread_cond_wait(&queue.changed, &queue.lock);
    queue.jobs[queue.count++] = job;
    pthread_cond_broadcast(&queue.changed);
    pthread_mutex_unlock(&queue.lock);
}

/* NULL once the queue is closed and empty. */
static struct job *pop_job(void)
{
    struct job *job = NULL;

    pthread_mutex_lock(&queue.lock);
    while (queue.count == 0 && !queue.closed)
        pthread_cond_wait(&queue.changed, &queue.lock);
    if (queue.count > 0) {
        job = queue.jobs[0];
        memmove(queue.jobs, queue.jobs + 1, --queue.count * sizeof queue.jobs[0]);
        pthread_cond_broadcast(&queue.changed);
    }
    pthread_mutex_unlock(&queue.lock);
    return job;
}

static void close_queue(void)
{
    pthread_mutex_lock(&queue.lock);
    queue.closed = true;
    pthread_cond_broadcast(&queue.changed);
    pthread_mutex_unlock(&queue.lock);
}

static bool same_name(const struct customer *customer, const char *name)
{
    return strcmp(customer->name, name) == 0;
}

static struct customer *find_customer(const char *name)
{
    for (size_t i = 0; i < CUSTOMER_COUNT; i++)
        if (same_name(&customers[i], name))
            return &customers[i];
    return NULL;
}

static int discount(const struct customer *customer, int price)
{
    return customer->rank == 2 ? price / 10 : price / 20;
}

static int price_for(const struct customer *customer, int price)
{
    if (customer->rank > 0)
        price -= discount(customer, price);
    return price;
}

static bool charge(struct customer *customer, int amount)
{
    bool enough;

    pthread_mutex_lock(&ledger_lock);
    enough = customer->credit >= amount;
    if (enough)
        customer->credit -= amount;
    pthread_mutex_unlock(&ledger_lock);
    return enough;
}

static int write_order(void)
{
    int number;

    pthread_mutex_lock(&ledger_lock);
    number = ++last_order;
    pthread_mutex_unlock(&ledger_lock);
    return number;
}

static void greet(struct job *job, const struct customer *customer)
{
    snprintf(job->reply, sizeof job->reply, "OK %s %d", customer->name, customer->rank);
}

static void place_order(struct job *job, struct customer *customer, int price)
{
    int amount = price_for(customer, price);

    if (charge(customer, amount))
        snprintf(job->reply, sizeof job->reply, "OK %d %d", write_order(), amount);
    else
        strcpy(job->reply, "NO CREDIT");
}

static void cancel(struct job *job, struct customer *customer, int price)
{
    charge(customer, -price_for(customer, price));
    strcpy(job->reply, "OK");
}

/* The entry point of every job. */
static void run_job(struct job *job)
{
    char verb[16] = "", name[32] = "";
    int price = 0;
    struct customer *customer;

    sscanf(job->line, "%15s %31s %d", verb, name, &price);
    customer = find_customer(name);
    if (!customer)
        strcpy(job->reply, "NO SUCH CUSTOMER");
    else if (!strcmp(verb, "GREET"))
        greet(job, customer);
    else if (!strcmp(verb, "ORDER"))
        place_order(job, customer, price);
    else
        cancel(job, customer, price);
    sem_post(&job->done);
}

/* A clerk's start function: an outer frame. */
static void *clerk(void *argument)
{
    struct job *job;

    (void)argument;
    while ((job = pop_job()))
        run_job(job);
    return NULL;
}

static void queue_and_wait(struct peer *peer, char *line)
{
    struct job job = {.line = line};

    sem_init(&job.done, 0, 0);
    push_job(&job);
    while (sem_wait(&job.done)) /* interrupted */
        ;
    sem_destroy(&job.done);
    wire_send(peer, job.reply);
}

static void answer(struct peer *peer, char *line)
{
    if (!strcmp(line, "QUIT")) {
        server_stop();
        wire_send(peer, "OK");
    } else {
        queue_and_wait(peer, line);
    }
}

int main(int argc, char **argv)
{
    pthread_t clerks[CLERKS];

    if (argc != 2) {
        fprintf(stderr, "usage: orders READY-FILE\n");
        return 2;
    }
    for (unsigned i = 0; i < CLERKS; i++)
        if (pthread_create(&clerks[i], NULL, clerk, NULL))
            errx(1, "cannot start a thread");
    server_run(argv[1], answer);
    close_queue();
    for (unsigned i = 0; i < CLERKS; i++)
        pthread_join(clerks[i], NULL);
    return 0;
}
