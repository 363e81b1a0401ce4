/* Sizes, numbers and durations as people write them; integers only, so that nothing is rounded silently. */
#include "fs/base/size.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

/* The part before the unit: digits, and a fraction of up to nine digits. */
struct decimal {
    uint64_t whole;
    uint64_t part, scale; /* the fraction is part / scale */
};

/* Returns the rest, or NULL with *error set. */
static const char *decimal_parse(const char *text, struct decimal *d, int *error)
{
    *d = (struct decimal){.scale = 1};
    *error = -EINVAL;
    const char *p = text;
    for (; isdigit((unsigned char)*p); p++)
        if (__builtin_mul_overflow(d->whole, 10, &d->whole) ||
            __builtin_add_overflow(d->whole, (uint64_t)(*p - '0'), &d->whole)) {
            *error = -ERANGE;
            return NULL;
        }
    if (p == text)
        return NULL;
    if (*p == '.') {
        const char *first = ++p;
        for (; isdigit((unsigned char)*p); p++)
            if (p - first < 9) {
                d->part = d->part * 10 + (uint64_t)(*p - '0');
                d->scale *= 10;
            }
        if (p == first)
            return NULL;
    }
    *error = 0;
    return p;
}

/* d × unit / divisor, rounded down. */
static int decimal_times(const struct decimal *d, uint64_t unit, uint64_t divisor, uint64_t *result)
{
    unsigned __int128 sum = (unsigned __int128)d->whole * unit;
    sum += (unsigned __int128)d->part * unit / d->scale;
    sum /= divisor;
    if (sum > UINT64_MAX)
        return -ERANGE;
    *result = (uint64_t)sum;
    return 0;
}

int size_parse(const char *text, uint64_t whole, uint64_t *size)
{
    struct decimal d;
    int error;
    const char *p = decimal_parse(text, &d, &error);
    if (!p)
        return error;
    if (strcmp(p, "%") == 0) {
        if (d.whole > 100 || (d.whole == 100 && d.part > 0))
            return -ERANGE;
        return decimal_times(&d, whole, 100, size);
    }
    if (*p == '\0')
        return d.scale > 1 ? -EINVAL : decimal_times(&d, 1, 1, size);
    static const char units[] = "KMGTPE";
    const char *unit = strchr(units, toupper((unsigned char)*p));
    if (!unit || (p[1] != '\0' && strcmp(p + 1, "iB") != 0))
        return -EINVAL;
    return decimal_times(&d, UINT64_C(1) << (10 * (unit - units + 1)), 1, size);
}

int number_parse(const char *text, uint64_t min, uint64_t max, uint64_t *number)
{
    struct decimal d;
    int error;
    const char *p = decimal_parse(text, &d, &error);
    if (!p)
        return error;
    if (*p != '\0' || d.scale > 1)
        return -EINVAL;
    if (d.whole < min || d.whole > max)
        return -ERANGE;
    *number = d.whole;
    return 0;
}

bool number_take(const char **at, const char *end, uint64_t most, uint64_t *number)
{
    const char *p = *at;
    for (*number = 0; p < end && *p >= '0' && *p <= '9'; p++) {
        uint64_t digit = (uint64_t)(*p - '0');
        if (digit > most || *number > (most - digit) / 10)
            return false;
        *number = *number * 10 + digit;
    }
    bool some = p > *at;
    *at = p;
    return some;
}

int millionths_parse(const char *text, uint64_t min, uint64_t max, uint64_t *millionths)
{
    struct decimal d;
    uint64_t value;
    int error;
    const char *p = decimal_parse(text, &d, &error);
    if (!p)
        return error;
    if (*p != '\0' || d.scale > MILLION)
        return -EINVAL;
    if (decimal_times(&d, MILLION, 1, &value) || value < min || value > max)
        return -ERANGE;
    *millionths = value;
    return 0;
}

int duration_parse(const char *text, uint64_t *nanoseconds)
{
    static const struct {
        const char *unit;
        uint64_t nanoseconds;
    } units[] = {
        {"", 1000000000u},
        {"s", 1000000000u},
        {"ms", 1000000u},
        {"m", 60 * UINT64_C(1000000000)},
        {"h", 3600 * UINT64_C(1000000000)},
        {"d", 86400 * UINT64_C(1000000000)},
    };
    struct decimal d;
    int error;
    const char *p = decimal_parse(text, &d, &error);
    if (!p)
        return error;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (strcmp(p, units[i].unit) == 0)
            return decimal_times(&d, units[i].nanoseconds, 1, nanoseconds);
    return -EINVAL;
}

char *size_format(uint64_t size, char *buffer, size_t n)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    if (size < 1024) {
        snprintf(buffer, n, "%u B", (unsigned)size);
        return buffer;
    }
    unsigned u = 1;
    while (u < 6 && size >> (10 * (u + 1)) > 0)
        u++;
    uint64_t one = UINT64_C(1) << (10 * u);
    uint64_t tenths = (uint64_t)(((unsigned __int128)size * 10 + one / 2) / one);
    if (tenths >= 10240 && u < 6) {
        tenths = 10;
        one <<= 10;
        u++;
    }
    if (size % one == 0)
        snprintf(buffer, n, "%u %s", (unsigned)(size / one), units[u]);
    else
        snprintf(buffer, n, "%u.%u %s", (unsigned)(tenths / 10), (unsigned)(tenths % 10), units[u]);
    return buffer;
}

char *duration_format(uint64_t nanoseconds, char *buffer, size_t n)
{
    unsigned long long us = nanoseconds / 1000, ms = us / 1000, s = ms / 1000, m = s / 60, h = m / 60, d = h / 24;
    if (ms == 0)
        snprintf(buffer, n, "%lluus", us);
    else if (s == 0)
        snprintf(buffer, n, "%llums", ms);
    else if (s < 10)
        snprintf(buffer, n, "%llu.%llus", s, ms % 1000 / 100);
    else if (m == 0)
        snprintf(buffer, n, "%llus", s);
    else if (h == 0)
        snprintf(buffer, n, "%llum%02llus", m, s % 60);
    else if (d == 0)
        snprintf(buffer, n, "%lluh%02llum", h, m % 60);
    else
        snprintf(buffer, n, "%llud%lluh", d, h % 24);
    return buffer;
}
