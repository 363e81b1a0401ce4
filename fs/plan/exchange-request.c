#include "fs/plan/exchange-request.h"

#include "fs/base/size.h"

#include <inttypes.h>
#include <string.h>

enum { WAIT_DEFAULT = 60, WAIT_MOST = 3600 };
#define WAIT_KEY                                                                                                       \
    {                                                                                                                  \
        .name = "wait", .value = "SEC",                                                                                \
        .help = "seconds after which it fails if not all nodes have the new layout (60)"                               \
    }

const struct key exchange_keys[] = {
    {.name = "epoch", .value = "E", .required = true, .help = "the epoch that the samples move for"},
    {.name = "fraction", .value = "Q", .required = true, .help = "the share of each node's samples that moves, 0 to 1"},
    {.name = "seed", .value = "S", .help = "seed that selects the samples and their new nodes (0)"},
    WAIT_KEY,
    {0},
};

const struct key shuffle_keys[] = {
    {.name = "seed", .value = "S", .required = true, .help = "seed that selects each sample's new node"},
    WAIT_KEY,
    {0},
};

static int refuse_value(int error, const char *name, const struct key_value *value, const char *what, struct str *why)
{
    str_addf(why, "`%s=", name);
    str_add_printable(why, value->text, value->length);
    return str_fail(why, error, "`: must be %s", what);
}

static int take_fraction(const struct key_value *value, uint32_t *fraction, struct str *why)
{
    uint64_t millionths = 0;
    int error = millionths_parse(value->text, 0, MILLION, &millionths);
    *fraction = (uint32_t)millionths;
    return error ? refuse_value(error, "fraction", value, "0 to 1, such as 0.1, with at most six decimals", why) : 0;
}

static int take_number(const char *name, const struct key_value *value, uint64_t *number, struct str *why)
{
    int error = value->text ? number_parse(value->text, 0, UINT64_MAX, number) : 0;
    return error ? refuse_value(error, name, value, "a whole number below 2^64", why) : 0;
}

static int take_wait(const struct key_value *value, uint64_t *seconds, struct str *why)
{
    int error = value->text ? number_parse(value->text, 1, WAIT_MOST, seconds) : 0;
    return error ? refuse_value(error, "wait", value, "1 to 3600 seconds", why) : 0;
}

int exchange_request_parse(const struct key *keys, const struct key_value *value, struct exchange_request *request,
                           struct str *why)
{
    struct exchange_request r = {.wait = WAIT_DEFAULT};
    int error = 0;
    for (int i = 0; keys[i].name && !error; i++)
        if (strcmp(keys[i].name, "fraction") == 0)
            error = take_fraction(&value[i], &r.fraction, why);
        else if (strcmp(keys[i].name, "wait") == 0)
            error = take_wait(&value[i], &r.wait, why);
        else
            error = take_number(keys[i].name, &value[i], keys[i].name[0] == 'e' ? &r.epoch : &r.seed, why);
    if (!error)
        *request = r;
    return error;
}
