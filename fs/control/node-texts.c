/* A table in order of no kind: the least recently used text is replaced. */
#include "fs/control/node-texts.h"

#include "fs/base/cleanup.h"
#include "fs/base/str.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void node_texts_init(struct node_texts *texts)
{
    memset(texts, 0, sizeof *texts);
    pthread_mutex_init(&texts->lock, NULL);
}

void node_texts_fini(struct node_texts *texts)
{
    for (int i = 0; i < NODE_TEXTS; i++)
        free(texts->at[i].text);
    pthread_mutex_destroy(&texts->lock);
}

static struct node_text *find_text(struct node_texts *texts, const struct digest *digest)
{
    for (int i = 0; i < NODE_TEXTS; i++)
        if (texts->at[i].text && digest_equal(&texts->at[i].digest, digest))
            return &texts->at[i];
    return NULL;
}

int node_texts_keep(struct node_texts *texts, const char *text, struct digest *digest)
{
    CLEANUP_FREE char *copy = strdup(text);
    if (!copy)
        return -ENOMEM;
    *digest = hash128(text, strlen(text), 0);
    LOCK_SCOPE(&texts->lock);
    struct node_text *there = find_text(texts, digest), *oldest = &texts->at[0];
    for (int i = 1; i < NODE_TEXTS && !there; i++)
        if (texts->at[i].used < oldest->used)
            oldest = &texts->at[i];
    if (!there) {
        there = oldest;
        free(there->text);
        there->text = steal_pointer(copy);
        there->digest = *digest;
    }
    there->used = ++texts->uses;
    return 0;
}

char *node_texts_expand(struct node_texts *texts, const char *pairs)
{
    static const char key[] = ",nodes=@";
    const char *from = strstr(pairs, key), *word = from ? from + sizeof key - 1 : NULL;
    char digits[DIGEST_TEXT];
    struct digest digest;
    struct str expanded = STR_INIT;
    size_t n = word ? strcspn(word, ",") : 0;
    if (!word || n != sizeof digits - 1)
        return strdup(pairs);
    memcpy(digits, word, n);
    digits[n] = '\0';
    if (digest_parse(digits, &digest))
        return strdup(pairs);
    LOCK_SCOPE(&texts->lock);
    struct node_text *there = find_text(texts, &digest);
    if (!there)
        return strdup(pairs);
    there->used = ++texts->uses;
    str_add(&expanded, pairs, (size_t)(word - 1 - pairs));
    str_add_percent(&expanded, there->text, strlen(there->text));
    str_adds(&expanded, word + n);
    return str_steal(&expanded);
}
