/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The catalog: which books there are, and how many of each.
 *
 *     SEARCH word     OK id id ...        best seller first
 *     GET id          OK stock price title
 *     TAKE id count   OK price | SOLD OUT
 *     PUT id count    OK
 *     QUIT            OK
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server.h"

struct book {
    int id, price, sold;
    int stock; /* under stock_lock */
    const char *title;
};

/* By id: find_book() halves. */
static struct book books[] = {
    {10, 4200, 31, 9, "The Art of Computer Programming"},
    {20, 3100, 57, 9, "The C Programming Language"},
    {30, 2800, 12, 9, "A Discipline of Programming"},
    {40, 3900, 44, 9, "Structure and Interpretation of Computer Programs"},
    {50, 2500, 23, 1, "The Mythical Man-Month"},
    {60, 3300, 38, 9, "Computer Networks"},
    {70, 2900, 19, 9, "The Practice of Programming"},
};
#define BOOK_COUNT (sizeof books / sizeof books[0])

static pthread_mutex_t stock_lock = PTHREAD_MUTEX_INITIALIZER;

static struct book *bisect(int id, size_t first, size_t count)
{
    size_t half = count / 2;

    if (count == 0)
        return NULL;
    if (books[first + half].id == id)
        return &books[first + half];
    if (id < books[first + half].id)
        return bisect(id, first, half);
    return bisect(id, first + half + 1, count - half - 1);
}

static struct book *find_book(int id)
{
    return bisect(id, 0, BOOK_COUNT);
}

static bool title_has(const struct book *book, const char *word)
{
    return strstr(book->title, word) != NULL;
}

/* Keeps `found` sorted, most sold first. */
static void rank(struct book **found, size_t count, struct book *book)
{
    while (count > 0 && found[count - 1]->sold < book->sold) {
        found[count] = found[count - 1];
        count--;
    }
    found[count] = book;
}

static void search(struct peer *peer, const char *word)
{
    struct book *found[BOOK_COUNT];
    char text[WIRE_LINE] = "OK";
    size_t count = 0, used = 2;

    for (size_t i = 0; i < BOOK_COUNT; i++)
        if (title_has(&books[i], word))
            rank(found, count++, &books[i]);
    for (size_t i = 0; i < count; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, " %d", found[i]->id);
    wire_send(peer, text);
}

static void show(struct peer *peer, const struct book *book)
{
    char text[WIRE_LINE];

    pthread_mutex_lock(&stock_lock);
    snprintf(text, sizeof text, "OK %d %d %s", book->stock, book->price, book->title);
    pthread_mutex_unlock(&stock_lock);
    wire_send(peer, text);
}

static bool change_stock(struct book *book, int count)
{
    bool enough;

    pthread_mutex_lock(&stock_lock);
    enough = book->stock + count >= 0;
    if (enough)
        book->stock += count;
    pthread_mutex_unlock(&stock_lock);
    return enough;
}

static void take(struct peer *peer, struct book *book, int count)
{
    char text[WIRE_LINE] = "SOLD OUT";

    if (change_stock(book, -count))
        snprintf(text, sizeof text, "OK %d", book->price * count);
    wire_send(peer, text);
}

static void put(struct peer *peer, struct book *book, int count)
{
    change_stock(book, count);
    wire_send(peer, "OK");
}

/* The entry point of every request. */
static void answer(struct peer *peer, char *line)
{
    char verb[16] = "", word[64] = "";
    int count = 0;
    struct book *book;

    sscanf(line, "%15s %63s %d", verb, word, &count);
    if (!strcmp(verb, "SEARCH")) {
        search(peer, word);
    } else if (!strcmp(verb, "QUIT")) {
        server_stop();
        wire_send(peer, "OK");
    } else if (!(book = find_book(atoi(word)))) {
        wire_send(peer, "NO SUCH BOOK");
    } else if (!strcmp(verb, "GET")) {
        show(peer, book);
    } else if (!strcmp(verb, "TAKE")) {
        take(peer, book, count);
    } else if (!strcmp(verb, "PUT")) {
        put(peer, book, count);
    } else {
        wire_send(peer, "WHAT");
    }
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: catalog READY-FILE\n");
        return 2;
    }
    server_run(argv[1], answer);
    return 0;
}
