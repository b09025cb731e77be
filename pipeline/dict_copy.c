/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/dict_copy.h"

#include "base/assert.h"

#include <stdlib.h>
#include <string.h>

#define PARTS_MAX 4

/* The strings and spans of an item: each either a text or a span. */
struct part {
    const char **text;
    struct mr_span *span;
};
struct parts {
    struct part items[PARTS_MAX];
    uint32_t count;
    size_t fields_size;
};

static void add_text(struct parts *parts, const char **text)
{
    MR_ASSERT(parts->count < PARTS_MAX);
    parts->items[parts->count++] = (struct part){.text = text};
}

static void add_span(struct parts *parts, struct mr_span *span)
{
    MR_ASSERT(parts->count < PARTS_MAX);
    parts->items[parts->count++] = (struct part){.span = span};
}

static struct parts parts_of(struct mr_dict_item *item)
{
    struct parts parts = {.count = 0};

    switch (item->kind) {
    case MR_DICT_SITE:
        parts.fields_size = sizeof(item->site);
        add_text(&parts, &item->site.module);
        add_text(&parts, &item->site.name);
        add_text(&parts, &item->site.file);
        add_span(&parts, &item->site.build_id);
        break;
    case MR_DICT_SCOPE:
        parts.fields_size = sizeof(item->scope);
        add_text(&parts, &item->scope.app);
        add_text(&parts, &item->scope.version);
        add_text(&parts, &item->scope.host);
        break;
    case MR_DICT_SOURCE:
        parts.fields_size = sizeof(item->source);
        add_text(&parts, &item->source.host);
        add_text(&parts, &item->source.app);
        add_text(&parts, &item->source.version);
        add_text(&parts, &item->source.exe);
        break;
    case MR_DICT_OUTER:
        parts.fields_size = sizeof(item->outer);
        break;
    case MR_DICT_NODE:
        parts.fields_size = sizeof(item->node);
        add_span(&parts, &item->node.children);
        break;
    case MR_DICT_NOTE:
        parts.fields_size = sizeof(item->note);
        add_text(&parts, &item->note.key);
        add_text(&parts, &item->note.value);
        break;
    case MR_DICT_SPAN_COUNTER:
        parts.fields_size = sizeof(item->span_counter);
        add_text(&parts, &item->span_counter.name);
        add_text(&parts, &item->span_counter.unit);
        add_text(&parts, &item->span_counter.absent);
        break;
    default:
        break;
    }
    return parts;
}

static const char *text_or_empty(const char *text)
{
    return text ? text : "";
}

static size_t size_of(const struct parts *parts)
{
    size_t size = parts->fields_size;

    for (uint32_t i = 0; i < parts->count; i++) {
        const struct part *part = &parts->items[i];

        size += part->text ? strlen(text_or_empty(*part->text)) + 1 : part->span->size;
    }
    return size;
}

size_t mr_dict_copy_size(const struct mr_dict_item *item)
{
    struct mr_dict_item copy = *item;
    struct parts parts = parts_of(&copy);

    return size_of(&parts);
}

void *mr_dict_copy_new(const struct mr_dict_item *item)
{
    struct mr_dict_item copy = *item;
    struct parts parts = parts_of(&copy);
    uint8_t *block, *at;

    if (parts.fields_size == 0)
        return NULL;
    block = malloc(size_of(&parts));
    if (!block)
        return NULL;
    at = block + parts.fields_size;
    for (uint32_t i = 0; i < parts.count; i++) {
        struct part *part = &parts.items[i];
        const void *from =
            part->text ? (const void *)text_or_empty(*part->text) : part->span->data;
        size_t size = part->text ? strlen(from) + 1 : part->span->size;

        if (size)
            memcpy(at, from, size);
        if (part->text)
            *part->text = (const char *)at;
        else
            part->span->data = at;
        at += size;
    }
    memcpy(block, &copy.site,
           parts.fields_size); /* the union's members begin at one address */
    return block;
}

void mr_dict_copy_get(enum mr_dict_kind kind, const void *block,
                      struct mr_dict_item *item)
{
    struct parts parts;

    memset(item, 0, sizeof(*item));
    item->kind = kind;
    parts = parts_of(item);
    MR_ASSERT(parts.fields_size > 0);
    memcpy(&item->site, block, parts.fields_size);
}
