/* Faults of answers, counted and not drawn, so that a test knows what comes. */
#include "mpi/faults.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char *const names[FAULTS] = {
    [FAULT_NONE] = "none",   [FAULT_DAMAGE] = "damage", [FAULT_SHORT] = "short",
    [FAULT_NEVER] = "never", [FAULT_TWICE] = "twice",
};

static int parse_one(const char *word, size_t n, struct faults *f)
{
    const char *colon = memchr(word, ':', n);
    if (!colon)
        return -EINVAL;
    char *end;
    unsigned long every = strtoul(colon + 1, &end, 10);
    if (end != word + n || end == colon + 1 || every == 0 || every > UINT32_MAX)
        return -EINVAL;
    for (int i = FAULT_NONE + 1; i < FAULTS; i++)
        if (strlen(names[i]) == (size_t)(colon - word) && memcmp(names[i], word, (size_t)(colon - word)) == 0) {
            f->every[i] = (uint32_t)every;
            return 0;
        }
    return -EINVAL;
}

int faults_parse(const char *text, struct faults *faults)
{
    struct faults f = {{0}, {0}};
    while (text && *text) {
        size_t n = strcspn(text, ",");
        int error = parse_one(text, n, &f);
        if (error)
            return error;
        text += n + (text[n] == ',');
    }
    *faults = f;
    return 0;
}

enum fault faults_next(struct faults *f)
{
    enum fault which = FAULT_NONE;
    for (int i = FAULT_NONE + 1; f && i < FAULTS; i++)
        if (f->every[i] && ++f->count[i] % f->every[i] == 0)
            which = (enum fault)i;
    return which;
}

void faults_damage(void *payload, size_t n)
{
    if (n > 0)
        ((uint8_t *)payload)[n - 1 - n / 3] ^= 0x10;
}
