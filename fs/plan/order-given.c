/* Reads and checks orders that users give. */
#include "fs/plan/order.h"

#include "fs/base/cleanup.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

/* The rest of a payload. */
struct order_payload {
    enum order_form form;
    const char *at, *end;
};

static bool is_space(char c)
{
    return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

/* Read a number of a text; if it has too many digits, the result is the maximum. False: not a number. */
static bool read_number(struct order_payload *p, uint64_t *value)
{
    while (is_space(*p->at))
        p->at++;
    const char *digits = p->at;
    *value = 0;
    while (p->at < p->end && *p->at >= '0' && *p->at <= '9') {
        uint64_t digit = (uint64_t)(*p->at++ - '0');
        *value = *value > (UINT64_MAX - digit) / 10 ? UINT64_MAX : *value * 10 + digit;
    }
    bool good = p->at > digits && (p->at == p->end || is_space(*p->at));
    if (!good)
        p->at = digits;
    return good;
}

static inline bool read_entry(struct order_payload *p, uint64_t *value)
{
    uint32_t narrow;
    if (p->form == ORDER_TEXT)
        return read_number(p, value);
    if (p->form == ORDER_U64) {
        memcpy(value, p->at, sizeof *value);
        p->at += sizeof *value;
    } else {
        memcpy(&narrow, p->at, sizeof narrow);
        p->at += sizeof narrow;
        *value = narrow;
    }
    return true;
}

static int refuse_word(uint64_t place, const struct order_payload *p, struct str *why)
{
    enum { SHOWN = 32 };
    size_t n = 0;
    while (p->at + n < p->end && n < SHOWN && !is_space(p->at[n]))
        n++;
    str_addf(why, "the order's entry %" PRIu64 " is not a number: `", place);
    str_add_printable(why, p->at, n);
    return str_fail(why, -EINVAL, "`");
}

static int refuse_number(uint64_t place, uint64_t value, uint32_t samples, struct str *why)
{
    return str_fail(why, -ERANGE,
                    "the order's entry %" PRIu64 " is %" PRIu64 ": the list has %" PRIu32 " samples, 0 to %" PRId64,
                    place, value, samples, (int64_t)samples - 1);
}

static int read_entries(const struct order_rules *rules, struct order_payload p, uint32_t *order, uint32_t count,
                        struct str *why)
{
    for (uint32_t i = 0; i < count; i++) {
        uint64_t value;
        if (i % PLAN_SLICE == 0 && plan_stopped(rules->stop))
            return -EINTR;
        if (!read_entry(&p, &value))
            return refuse_word(i, &p, why);
        if (value >= rules->samples)
            return refuse_number(i, value, rules->samples, why);
        order[i] = (uint32_t)value;
    }
    return 0;
}

static uint64_t count_words(const char *at, const char *end)
{
    uint64_t words = 0;
    for (bool space = true; at < end; at++) {
        words += space && !is_space(*at);
        space = is_space(*at);
    }
    return words;
}

static int count_entries(const struct order_rules *rules, const char *payload, size_t n, uint64_t *count,
                         struct str *why)
{
    size_t width = rules->form == ORDER_U32 ? sizeof(uint32_t) : sizeof(uint64_t);
    if (rules->form == ORDER_TEXT) {
        *count = count_words(payload, payload + n);
    } else if (n % width != 0) {
        return str_fail(why, -EINVAL,
                        "the order has %zu bytes, which is not a whole number of u%zu entries (%zu bytes each)", n,
                        8 * width, width);
    } else {
        *count = n / width;
    }
    if (*count > PLAN_ENTRIES_MOST)
        return str_fail(why, -E2BIG, "the order has %" PRIu64 " entries; at most %u can be planned", *count,
                        PLAN_ENTRIES_MOST);
    if (rules->distinct && *count != rules->samples)
        return str_fail(why, -EINVAL,
                        "the order has %" PRIu64 " entries and the list %" PRIu32
                        " samples: too %s to be a permutation "
                        "(distinct=no accepts any length)",
                        *count, rules->samples, *count < rules->samples ? "short" : "long");
    return 0;
}

/* There are as many entries as samples, all in range: if none is repeated, none is missing. */
static int check_distinct(const uint32_t *order, uint32_t count, const struct plan_stop *stop, struct str *why)
{
    CLEANUP_FREE uint64_t *seen = calloc((size_t)count / 64 + 1, sizeof *seen);
    if (!seen)
        return str_no_memory(why);
    for (uint32_t i = 0; i < count; i++) {
        uint64_t bit = UINT64_C(1) << order[i] % 64;
        if (i % PLAN_SLICE == 0 && plan_stopped(stop))
            return -EINTR;
        if (seen[order[i] / 64] & bit)
            return str_fail(why, -EINVAL,
                            "the order's entry %" PRIu32 " is %" PRIu32
                            " again, so it is not a permutation of the list (distinct=no allows repeats)",
                            i, order[i]);
        seen[order[i] / 64] |= bit;
    }
    return 0;
}

int order_given(const struct order_rules *rules, const void *payload, size_t n, uint32_t **order, uint32_t *count,
                struct str *why)
{
    const char *bytes = payload;
    CLEANUP_FREE uint32_t *taken = NULL;
    uint64_t entries;
    int error = count_entries(rules, bytes, n, &entries, why);
    if (error)
        return error;
    taken = malloc((entries + !entries) * sizeof *taken);
    if (!taken)
        return str_no_memory(why);
    error = read_entries(rules, (struct order_payload){rules->form, bytes, bytes + n}, taken, (uint32_t)entries, why);
    if (!error && rules->distinct)
        error = check_distinct(taken, (uint32_t)entries, rules->stop, why);
    if (error)
        return error;
    *order = steal_pointer(taken);
    *count = (uint32_t)entries;
    return 0;
}
