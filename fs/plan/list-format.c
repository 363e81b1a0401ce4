/* Formats lists as text and numbers. */
#include "fs/plan/list-format.h"

#include <string.h>

enum { DIGITS_MOST = 10, AT_ONCE = 4096 };

/* Write a number; returns its end. */
static char *put_number(char *to, uint32_t number)
{
    char digits[DIGITS_MOST];
    int n = 0;
    do
        digits[n++] = (char)('0' + number % 10);
    while (number /= 10);
    while (n > 0)
        *to++ = digits[--n];
    return to;
}

/* Numbers with separators, and a newline at the end. */
static void add_text(struct str *out, const uint32_t *list, uint64_t n, char separator)
{
    for (uint64_t i = 0; i < n;) {
        uint64_t some = n - i < AT_ONCE ? n - i : AT_ONCE;
        char *from = str_reserve(out, some * (DIGITS_MOST + 1)), *to = from;
        if (!from)
            return;
        for (uint64_t end = i + some; i < end; i++) {
            to = put_number(to, list[i]);
            *to++ = i + 1 < n ? separator : '\n';
        }
        out->length += (size_t)(to - from);
    }
    str_add(out, "", 0);
}

static void add_u64(struct str *out, const uint32_t *list, uint64_t n)
{
    char *to = str_reserve(out, n * sizeof(uint64_t));
    if (!to)
        return;
    for (uint64_t i = 0; i < n; i++) {
        uint64_t wide = list[i];
        memcpy(to + i * sizeof wide, &wide, sizeof wide);
    }
    out->length += n * sizeof(uint64_t);
    str_add(out, "", 0);
}

static void add_list(struct str *out, enum plan_reply reply, const uint32_t *list, uint64_t n, char separator)
{
    if (reply == REPLY_U32)
        str_add(out, list, n * sizeof *list);
    else if (reply == REPLY_U64)
        add_u64(out, list, n);
    else if (n > 0)
        add_text(out, list, n, separator);
    else if (separator == ' ')
        str_adds(out, "\n");
}

uint64_t format_most(enum plan_reply reply, const struct plan_shape *shape, uint32_t samples, uint32_t rank)
{
    bool all = rank == PLAN_ALL_RANKS;
    uint64_t entries = all ? plan_shape_place(shape, shape->ranks) : plan_shape_length(shape, rank);
    uint64_t width = reply == REPLY_U32 ? sizeof(uint32_t) : sizeof(uint64_t);
    if (reply == REPLY_TEXT) {
        width = 2;
        for (uint32_t last = samples ? samples - 1 : 0; last >= 10; last /= 10)
            width++;
    }
    return entries * width + (all ? shape->ranks : 0);
}

uint64_t format_part(const struct plan_request *wanted, const uint32_t *list, uint64_t n, uint32_t *to)
{
    uint64_t batch = wanted->batch, every = batch * wanted->workers, taken = 0;
    for (uint64_t from = batch * wanted->worker; from < n; from += every) {
        uint64_t some = n - from < batch ? n - from : batch;
        memcpy(to + taken, list + from, some * sizeof *to);
        taken += some;
    }
    return taken;
}

void format_list(struct str *out, enum plan_reply reply, const uint32_t *list, uint64_t n)
{
    add_list(out, reply, list, n, '\n');
}

void format_lists(struct str *out, enum plan_reply reply, const struct plan_shape *shape, const uint32_t *lists,
                  uint32_t rank)
{
    if (rank != PLAN_ALL_RANKS) {
        format_list(out, reply, lists + plan_shape_place(shape, rank), plan_shape_length(shape, rank));
        return;
    }
    for (uint32_t r = 0; r < shape->ranks; r++)
        add_list(out, reply, lists + plan_shape_place(shape, r), plan_shape_length(shape, r), ' ');
}
