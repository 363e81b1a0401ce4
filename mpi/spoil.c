#include "mpi/spoil.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char *const names[SPOIL_WAYS] = {"none", "damage", "short", "never", "twice"};

static int parse_word(const char *word, struct spoil *s, const char **end)
{
    size_t n = strcspn(word, ":,");
    char *after;
    int way = SPOIL_NONE + 1;
    while (way < SPOIL_WAYS && (strlen(names[way]) != n || memcmp(names[way], word, n) != 0))
        way++;
    if (way == SPOIL_WAYS || word[n] != ':')
        return -EINVAL;
    unsigned long every = strtoul(word + n + 1, &after, 10);
    if (after == word + n + 1 || (*after != '\0' && *after != ',') || every == 0 || every > UINT32_MAX)
        return -EINVAL;
    s->every[way] = (uint32_t)every;
    *end = after;
    return 0;
}

int spoil_parse(const char *text, struct spoil *spoil)
{
    struct spoil s = {0};
    while (text && *text) {
        int error = parse_word(text, &s, &text);
        if (error)
            return error;
        text += *text == ',';
    }
    *spoil = s;
    return 0;
}

enum spoil_way spoil_next(struct spoil *s)
{
    enum spoil_way which = SPOIL_NONE;
    for (int i = SPOIL_NONE + 1; i < SPOIL_WAYS; i++)
        if (s->every[i] && ++s->count[i] % s->every[i] == 0)
            which = (enum spoil_way)i;
    return which;
}

void spoil_damage(void *payload, size_t n)
{
    if (n > 0)
        ((uint8_t *)payload)[n - 1 - n / 3] ^= 0x10;
}
