/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The storefront: every customer named in the script shops in a thread of their own, and does what their lines say, in
 * order, as many rounds as asked for. Then the other two programs are told to end.
 *
 *     storefront CATALOG-PORT ORDERS-PORT SCRIPT [ROUNDS]
 */
#include <err.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "wire.h"

#define VISITS_MAX 256
#define CUSTOMERS_MAX 16

struct visit {
    char customer[32], verb[16], what[32];
};

struct customer {
    pthread_t thread;
    char name[32];
    struct peer catalog, orders;
    unsigned bought, refused;
};

static struct {
    const char *catalog_port, *orders_port;
    unsigned rounds, visit_count, customer_count;
    struct visit visits[VISITS_MAX];
    struct customer customers[CUSTOMERS_MAX];
} store;

/* One request, one reply; true if that begins with OK. */
static bool ask(struct peer *peer, const char *request, char reply[WIRE_LINE])
{
    if (!wire_send(peer, request) || !wire_receive(peer, reply))
        errx(1, "a server is gone");
    return strncmp(reply, "OK", 2) == 0;
}

/* Shows every book that the search found. */
static void browse(struct customer *customer, const char *word)
{
    char request[64], reply[WIRE_LINE], *rest = NULL;

    snprintf(request, sizeof request, "SEARCH %s", word);
    ask(&customer->catalog, request, reply);
    strtok_r(reply, " ", &rest);
    for (char *id; (id = strtok_r(NULL, " ", &rest));) {
        char page[WIRE_LINE];
        snprintf(request, sizeof request, "GET %s", id);
        ask(&customer->catalog, request, page);
    }
}

static void look(struct customer *customer, const char *id)
{
    char request[64], reply[WIRE_LINE];

    snprintf(request, sizeof request, "GET %s", id);
    ask(&customer->catalog, request, reply);
}

static int reserve(struct customer *customer, const char *id)
{
    char request[64], reply[WIRE_LINE];

    snprintf(request, sizeof request, "TAKE %s 1", id);
    return ask(&customer->catalog, request, reply) ? atoi(reply + 3) : 0;
}

static void give_back(struct customer *customer, const char *id)
{
    char request[64], reply[WIRE_LINE];

    snprintf(request, sizeof request, "PUT %s 1", id);
    ask(&customer->catalog, request, reply);
}

static void buy(struct customer *customer, const char *id)
{
    char request[64], reply[WIRE_LINE];
    int price = reserve(customer, id);

    if (price == 0) {
        customer->refused++;
        return;
    }
    snprintf(request, sizeof request, "ORDER %s %d", customer->name, price);
    if (ask(&customer->orders, request, reply)) {
        customer->bought++;
        return;
    }
    customer->refused++;
    give_back(customer, id);
}

/* The book goes back to the shelf, its price to the customer's credit. */
static void refund(struct customer *customer, const char *id)
{
    char request[64], reply[WIRE_LINE];
    int stock, price;

    snprintf(request, sizeof request, "GET %s", id);
    if (!ask(&customer->catalog, request, reply) ||
        sscanf(reply, "OK %d %d", &stock, &price) != 2)
        return;
    give_back(customer, id);
    snprintf(request, sizeof request, "CANCEL %s %d", customer->name, price);
    ask(&customer->orders, request, reply);
}

static void enter(struct customer *customer)
{
    char request[64], reply[WIRE_LINE];

    snprintf(request, sizeof request, "GREET %s", customer->name);
    ask(&customer->orders, request, reply);
}

static void do_visit(struct customer *customer, const struct visit *visit)
{
    if (!strcmp(visit->verb, "enter"))
        enter(customer);
    else if (!strcmp(visit->verb, "browse"))
        browse(customer, visit->what);
    else if (!strcmp(visit->verb, "look"))
        look(customer, visit->what);
    else if (!strcmp(visit->verb, "buy"))
        buy(customer, visit->what);
    else
        refund(customer, visit->what);
}

/* A customer's start function: an outer frame. Below it, each do_visit() is a call tree. */
static void *shop(void *argument)
{
    struct customer *customer = argument;

    customer->catalog = wire_connect(store.catalog_port);
    customer->orders = wire_connect(store.orders_port);
    for (unsigned round = 0; round < store.rounds; round++)
        for (unsigned i = 0; i < store.visit_count; i++)
            if (!strcmp(store.visits[i].customer, customer->name))
                do_visit(customer, &store.visits[i]);
    wire_close(&customer->catalog);
    wire_close(&customer->orders);
    return NULL;
}

static void add_customer(const char *name)
{
    for (unsigned i = 0; i < store.customer_count; i++)
        if (!strcmp(store.customers[i].name, name))
            return;
    if (store.customer_count == CUSTOMERS_MAX)
        errx(1, "more than %d customers", CUSTOMERS_MAX);
    strcpy(store.customers[store.customer_count++].name, name);
}

/* Lines `customer verb what`; # begins a comment. */
static void read_script(const char *name)
{
    char line[128];
    FILE *file = fopen(name, "r");

    if (!file)
        err(1, "%s", name);
    while (fgets(line, sizeof line, file)) {
        struct visit *visit = &store.visits[store.visit_count];
        if (line[0] == '#' ||
            sscanf(line, "%31s %15s %31s", visit->customer, visit->verb, visit->what) < 2)
            continue;
        if (++store.visit_count == VISITS_MAX)
            errx(1, "%s: more than %d lines", name, VISITS_MAX - 1);
        add_customer(visit->customer);
    }
    fclose(file);
}

static void run_customers(void)
{
    for (unsigned i = 0; i < store.customer_count; i++)
        if (pthread_create(&store.customers[i].thread, NULL, shop, &store.customers[i]))
            errx(1, "cannot start a thread");
    for (unsigned i = 0; i < store.customer_count; i++)
        pthread_join(store.customers[i].thread, NULL);
}

static void stop_server(const char *port)
{
    char reply[WIRE_LINE];
    struct peer peer = wire_connect(port);

    ask(&peer, "QUIT", reply);
    wire_close(&peer);
}

static void report(void)
{
    for (unsigned i = 0; i < store.customer_count; i++)
        printf("%s bought %u, was refused %u\n", store.customers[i].name,
               store.customers[i].bought, store.customers[i].refused);
}

int main(int argc, char **argv)
{
    if (argc < 4 || argc > 5) {
        fprintf(stderr, "usage: storefront CATALOG-PORT ORDERS-PORT SCRIPT [ROUNDS]\n");
        return 2;
    }
    store.catalog_port = argv[1];
    store.orders_port = argv[2];
    store.rounds = argc == 5 ? (unsigned)strtoul(argv[4], NULL, 10) : 1;
    read_script(argv[3]);
    run_customers();
    stop_server(store.catalog_port);
    stop_server(store.orders_port);
    report();
    return 0;
}
